// SPDX-License-Identifier: Apache-2.0
// Files whose layers have different heads and widths, share caches, and get inputs of their own.
#include "support/checkpoints.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define S "\"sliding_attention\""
#define F "\"full_attention\""
#define GEMMA                                                                                      \
    "{\"model_type\":\"gemma4_text\",\"hidden_size\":64,\"num_attention_heads\":4,"                \
    "\"num_key_value_heads\":2,\"vocab_size\":100,\"intermediate_size\":128,\"head_dim\":16,"      \
    "\"num_hidden_layers\":5,\"layer_types\":[" S "," S "," F "," S "," F "],"                     \
    "\"hidden_size_per_layer_input\":8,"

static struct st_config config; // too large for a stack

static void assert_read(const char *text) {
    ts_assert_config(text, &config);
}

static void assert_refused(const char *text, const char *mark) {
    ts_assert_config_refused(text, mark, &config);
}

static void assert_heads(uint32_t layer, uint32_t n_kv, uint32_t dim) {
    struct st_heads heads = st_config_heads(&config, layer);
    assert_int_equal(heads.n_kv, n_kv);
    assert_int_equal(heads.dim, dim);
    assert_int_equal(heads.rope_dims, dim);
}

static void heads_are_those_of_the_kind_of_layer(void **state) {
    (void)state;
    assert_read(GEMMA "\"global_head_dim\":24}");
    assert_heads(0, 2, 16);
    assert_heads(2, 2, 24);
    assert_int_equal(st_config_mixer(&config, 0).out, 64);
    assert_int_equal(st_config_mixer(&config, 2).out, 96);
    assert_int_equal(config.rope.n_turned, 3);
    assert_read(GEMMA "\"per_layer_config\":{\"2\":{\"head_dim\":24,\"num_key_value_heads\":1},"
                      "\"4\":{\"head_dim\":24,\"num_key_value_heads\":1}}}");
    assert_heads(1, 2, 16);
    assert_heads(4, 1, 24);
    assert_read(GEMMA "\"per_layer_config\":{}}");
    assert_heads(4, 2, 16);
    assert_refused(GEMMA "\"per_layer_config\":{\"2\":{\"head_dim\":24},\"4\":{\"head_dim\":20}}}",
                   "layer 4");
    assert_refused(GEMMA "\"per_layer_config\":{\"0\":{\"head_dim\":24}}}", "with a window");
    assert_refused(GEMMA "\"per_layer_config\":{\"2\":{\"hidden_size\":24}}}", "hidden_size");
    assert_refused(GEMMA "\"global_head_dim\":5000}", "head size");
    assert_refused(GEMMA "\"global_head_dim\":23}", "rotary size");
}

static void keys_may_be_values(void **state) {
    (void)state;
    assert_read(GEMMA "\"attention_k_eq_v\":true,\"num_global_key_value_heads\":1}");
    assert_int_equal(st_config_mixer(&config, 0).v, 32);
    assert_int_equal(st_config_mixer(&config, 2).k, 512);
    assert_int_equal(st_config_mixer(&config, 2).v, 0);
    assert_read(GEMMA "\"num_global_key_value_heads\":1}");
    assert_int_equal(st_config_mixer(&config, 2).v, 1024);
}

static void caches_are_the_last_ones_of_their_kind(void **state) {
    static const uint16_t back[] = {0, 0, 0, 2, 2};
    (void)state;
    assert_read(GEMMA "\"num_kv_shared_layers\":2,\"use_double_wide_mlp\":true}");
    assert_memory_equal(config.cache_back, back, sizeof back);
    assert_true(st_config_has_cache(&config, 2));
    assert_false(st_config_has_cache(&config, 3));
    assert_int_equal(st_config_cache_of(&config, 3), 1);
    assert_int_equal(st_config_mixer(&config, 3).k + st_config_mixer(&config, 3).v, 0);
    assert_int_equal(st_config_ffn(&config, 2, 0), 128);
    assert_int_equal(st_config_ffn(&config, 3, 0), 256);
    assert_int_equal(st_config_widest_ffn(&config), 256);
    assert_refused(GEMMA "\"num_kv_shared_layers\":3}", "none before layer 2");
    assert_refused(GEMMA "\"num_kv_shared_layers\":5}", "5 of 5");
}

static void inputs_have_a_width_and_a_vocabulary(void **state) {
    (void)state;
    assert_read(GEMMA "\"vocab_size_per_layer_input\":90}");
    assert_int_equal(config.layer_input, 8);
    assert_int_equal(config.layer_vocab, 90);
    assert_refused(GEMMA "\"vocab_size_per_layer_input\":0}", "vocabulary of layers' inputs");
    assert_refused(GEMMA "\"hidden_size_per_layer_input\":70000}", "width of layers' inputs");
}

static void what_is_not_of_this_form_is_refused(void **state) {
    (void)state;
    assert_refused(GEMMA "\"use_bidirectional_attention\":\"all\"}", "all");
    assert_refused(GEMMA "\"sliding_window\":0}", "sliding_window");
    assert_read(GEMMA "\"use_bidirectional_attention\":\"vision\"}");
}

static void experts_stand_beside_a_block_of_the_plain_width(void **state) {
    (void)state;
    assert_read(GEMMA "\"enable_moe_block\":true,\"num_experts\":6,\"top_k_experts\":3,"
                      "\"moe_intermediate_size\":24}");
    assert_int_equal(config.n_experts, 6);
    assert_int_equal(config.n_experts_used, 3);
    assert_int_equal(st_config_blocks(&config, 1), 7);
    assert_int_equal(st_config_ffn(&config, 1, 5), 24);
    assert_int_equal(st_config_ffn(&config, 1, 6), 128);
    assert_false(config.router.sigmoid || config.router.shares);
    assert_read(GEMMA "\"enable_moe_block\":true,\"num_experts\":6,"
                      "\"expert_intermediate_size\":28}");
    assert_int_equal(st_config_ffn(&config, 1, 5), 28);
    // What files without a mixture say of its sizes counts for nothing.
    assert_read(GEMMA "\"num_experts\":6,\"moe_intermediate_size\":24}");
    assert_int_equal(config.n_experts, 0);
    assert_int_equal(st_config_ffn(&config, 1, 0), 128);
    assert_refused(GEMMA "\"enable_moe_block\":true}", "num_experts");
    assert_refused(GEMMA "\"enable_moe_block\":true,\"num_experts\":6,\"top_k_experts\":7}",
                   "7 of 6");
    assert_refused(GEMMA "\"enable_moe_block\":true,\"num_experts\":6,\"num_kv_shared_layers\":2,"
                         "\"use_double_wide_mlp\":true}",
                   "use_double_wide_mlp");
}

#define GEMMA3N                                                                                    \
    "{\"model_type\":\"gemma3n_text\",\"hidden_size\":64,\"num_attention_heads\":4,"               \
    "\"vocab_size\":100,\"head_dim\":16,\"num_hidden_layers\":5,\"num_kv_shared_layers\":0,"

static void more_layers_than_any_limit_are_refused(void **state) {
    static char text[64 << 10];
    size_t n = ST_MAX_LAYERS + 1;
    (void)state;
    snprintf(
        text, sizeof text,
        "{\"model_type\":\"gemma4_text\",\"hidden_size\":64,\"num_attention_heads\":4,"
        "\"vocab_size\":100,\"intermediate_size\":8,\"num_hidden_layers\":%zu,\"layer_types\":[" F,
        n);
    for (size_t i = 1; i < n; i++) strcat(text, "," S);
    assert_refused(strcat(text, "]}"), "layers");
}

static void hidden_states_and_cutoffs_are_read(void **state) {
    (void)state;
    assert_read(GEMMA3N "\"intermediate_size\":[8,8,16,16,8],\"altup_correct_scale\":false,"
                        "\"activation_sparsity_pattern\":[0.95,0.5,0,0.0,0.1]}");
    assert_int_equal(config.n_streams, 4);
    assert_int_equal(config.laurel, 64);
    assert_true(config.stream_unscaled);
    assert_int_equal(st_config_ffn(&config, 2, 0), 16);
    assert_int_equal(st_config_ffn(&config, 4, 0), 8);
    assert_true(config.cut[0] && config.cut[1] && !config.cut[2] && config.cut[4]);
    assert_float_equal(config.cutoff[0], 1.6448536, 1e-6);
    assert_float_equal(config.cutoff[1], 0.0, 1e-6);
    assert_float_equal(config.cutoff[4], -1.2815516, 1e-6);
    assert_read(GEMMA3N "\"intermediate_size\":8,\"activation_sparsity_pattern\":null}");
    assert_int_equal(config.cut[0], 0);
    assert_refused(GEMMA3N "\"intermediate_size\":[8,8]}", "2 entries for 5");
    assert_refused(GEMMA3N "\"intermediate_size\":[]}", "empty list");
    assert_refused(GEMMA3N "\"intermediate_size\":8,\"activation_sparsity_pattern\":1.0}", "[0]");
    assert_refused(GEMMA3N "\"intermediate_size\":8,\"altup_active_idx\":1}", "altup_active_idx");
    assert_refused(GEMMA3N "\"intermediate_size\":8,\"altup_num_inputs\":1}", "one hidden state");
    assert_refused(GEMMA3N "\"intermediate_size\":8,\"altup_num_inputs\":9}", "hidden states");
    assert_refused(GEMMA3N "\"intermediate_size\":8,\"activation_sparsity_pattern\":0.5,"
                           "\"enable_moe_block\":true,\"num_experts\":4}",
                   "a cutoff");
    assert_refused(GEMMA3N "\"intermediate_size\":8,\"laurel_rank\":0}", "rank");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_those_of_the_kind_of_layer),
        cmocka_unit_test(keys_may_be_values),
        cmocka_unit_test(caches_are_the_last_ones_of_their_kind),
        cmocka_unit_test(inputs_have_a_width_and_a_vocabulary),
        cmocka_unit_test(what_is_not_of_this_form_is_refused),
        cmocka_unit_test(experts_stand_beside_a_block_of_the_plain_width),
        cmocka_unit_test(more_layers_than_any_limit_are_refused),
        cmocka_unit_test(hidden_states_and_cutoffs_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

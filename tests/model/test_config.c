// SPDX-License-Identifier: Apache-2.0
// config.json into a config: what real files say, what they leave out, and what must be refused.
#include "support/checkpoints.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define SIZES                                                                                      \
    "\"num_hidden_layers\":4,\"hidden_size\":64,\"num_attention_heads\":4,\"vocab_size\":100,"     \
    "\"intermediate_size\":128"

static struct st_config config; // too large for a stack

static stint_status read_text(const char *text) {
    return ts_read_config(text, &config);
}

static void assert_refused(const char *text, stint_status status, const char *mark) {
    assert_int_equal(read_text(text), status);
    if (!strstr(st_error_text(), mark))
        fail_msg("error '%s' does not mention '%s'", st_error_text(), mark);
}

static void llama_fills_in_what_the_file_leaves_out(void **state) {
    (void)state;
    assert_int_equal(read_text("{\"model_type\":\"llama\"," SIZES "}"), STINT_OK);
    assert_int_equal(config.n_kv_heads, 4);
    assert_int_equal(config.head_dim, 16);
    assert_int_equal(config.rope_dims, 16);
    assert_int_equal(config.act, ST_ACT_SILU);
    assert_true(config.tied_if_absent);
    assert_true(fabsf(config.attn_scale - 0.25f) < 1e-7f);
}

static void gemma_says_gelu_and_means_the_tanh_form(void **state) {
    (void)state;
    read_text("{\"model_type\":\"gemma\",\"hidden_act\":\"gelu\",\"head_dim\":16," SIZES "}");
    assert_int_equal(config.act, ST_ACT_GELU_TANH);
    assert_true(config.norm_offset == 1.0f);
    assert_true(config.embed_scale == 8.0f);
    read_text("{\"model_type\":\"gemma\",\"hidden_activation\":\"gelu\"," SIZES "}");
    assert_int_equal(config.act, ST_ACT_GELU_ERF);
}

static void drelu_by_name_or_by_family(void **state) {
    (void)state;
    read_text("{\"model_type\":\"qwen2\",\"hidden_act\":\"drelu\"," SIZES "}");
    assert_int_equal(config.act, ST_ACT_DRELU);
    read_text("{\"model_type\":\"bamboo\",\"hidden_act\":\"relu\"," SIZES "}");
    assert_int_equal(config.act, ST_ACT_DRELU);
    read_text("{\"model_type\":\"llama\",\"hidden_act\":\"relu\"," SIZES "}");
    assert_int_equal(config.act, ST_ACT_RELU);
}

static void hybrids_say_which_layers_attend(void **state) {
    (void)state;
    assert_int_equal(read_text("{\"model_type\":\"qwen3_5_text\"," SIZES "}"), STINT_OK);
    const uint8_t every_fourth[] = {ST_FORM_DELTA, ST_FORM_DELTA, ST_FORM_DELTA, ST_FORM_ATTENTION};
    assert_memory_equal(config.form, every_fourth, 4);
    assert_int_equal(config.state.n_heads, 32);
    assert_int_equal(config.state.n_values, 128);
    assert_int_equal(config.rope_dims, 64);
    assert_int_equal(read_text("{\"model_type\":\"granitemoehybrid\",\"mamba_n_heads\":8,"
                               "\"layer_types\":[\"mamba\",\"attention\",\"mamba\",\"mamba\"],"
                               "\"shared_intermediate_size\":48," SIZES "}"),
                     STINT_OK);
    const uint8_t second[] = {ST_FORM_MAMBA, ST_FORM_ATTENTION, ST_FORM_MAMBA, ST_FORM_MAMBA};
    assert_memory_equal(config.form, second, 4);
    assert_int_equal(config.state.n_values, 16);
    assert_int_equal(config.rope_dims, 0);
    assert_int_equal(config.ffn, 48);
}

static void states_that_make_no_sense_are_refused(void **state) {
    (void)state;
#define QWEN35 "{\"model_type\":\"qwen3_5_text\","
    assert_refused(QWEN35 "\"linear_num_key_heads\":5," SIZES "}", STINT_E_FORMAT, "5 groups");
    assert_refused(QWEN35 "\"linear_key_head_dim\":257," SIZES "}", STINT_E_FORMAT, "key size");
    assert_refused(QWEN35 "\"linear_value_head_dim\":0," SIZES "}", STINT_E_FORMAT, "value size");
    assert_refused(QWEN35 "\"linear_conv_kernel_dim\":9," SIZES "}", STINT_E_UNSUPPORTED,
                   "9 tokens");
    assert_refused(QWEN35 "\"full_attention_interval\":9," SIZES "}", STINT_E_UNSUPPORTED,
                   "no layer has attention");
    assert_refused(QWEN35 "\"layer_types\":[1,2,3,4]," SIZES "}", STINT_E_UNSUPPORTED, "no text");
#undef QWEN35
}

static void windows_follow_the_family(void **state) {
    (void)state;
    read_text("{\"model_type\":\"gemma2\",\"sliding_window\":8," SIZES "}");
    assert_memory_equal(config.sliding, "\1\0\1\0", 4);
    read_text("{\"model_type\":\"gemma3_text\",\"sliding_window_pattern\":3," SIZES "}");
    assert_memory_equal(config.sliding, "\1\1\0\1", 4);
    read_text("{\"model_type\":\"mistral\",\"sliding_window\":8," SIZES "}");
    assert_memory_equal(config.sliding, "\1\1\1\1", 4);
    read_text("{\"model_type\":\"mistral\",\"sliding_window\":null," SIZES "}");
    assert_memory_equal(config.sliding, "\0\0\0\0", 4);
    read_text("{\"model_type\":\"qwen2\",\"sliding_window\":8,\"use_sliding_window\":true,"
              "\"max_window_layers\":2," SIZES "}");
    assert_memory_equal(config.sliding, "\0\0\1\1", 4);
    read_text("{\"model_type\":\"qwen2\",\"sliding_window\":8,\"use_sliding_window\":false," SIZES
              "}");
    assert_memory_equal(config.sliding, "\0\0\0\0", 4);
    read_text(
        "{\"model_type\":\"gemma2\",\"sliding_window\":8,\"layer_types\":["
        "\"full_attention\",\"full_attention\",\"sliding_attention\",\"full_attention\"]," SIZES
        "}");
    assert_memory_equal(config.sliding, "\0\0\1\0", 4);
}

static void rope_scaling_in_every_spelling(void **state) {
    (void)state;
    read_text("{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}," SIZES
              "}");
    assert_int_equal(config.rope.scaling, ST_ROPE_LINEAR);
    read_text("{\"model_type\":\"llama\",\"rope_parameters\":{\"rope_type\":\"default\","
              "\"rope_theta\":5e5}," SIZES "}");
    assert_int_equal(config.rope.scaling, ST_ROPE_NONE);
    assert_true(config.rope.theta == 5e5);
    read_text("{\"model_type\":\"gemma3_text\",\"rope_scaling\":{\"rope_type\":\"linear\","
              "\"factor\":8}," SIZES "}");
    assert_int_equal(config.rope.scaling, ST_ROPE_LINEAR);
    assert_int_equal(config.rope_local.scaling, ST_ROPE_NONE);
    assert_true(config.rope_local.theta == 10000.0);
    assert_int_equal(read_text("{\"model_type\":\"phi3\",\"max_position_embeddings\":64,"
                               "\"original_max_position_embeddings\":16,\"rope_scaling\":{"
                               "\"type\":\"su\",\"short_factor\":[1,1,1,1,1,1,1,1],"
                               "\"long_factor\":[2,2,2,2,2,2,2,2]}," SIZES "}"),
                     STINT_OK);
    assert_int_equal(config.rope.scaling, ST_ROPE_LONGROPE);
    assert_true(config.rope.factor == 4.0);
    assert_true(config.rope.factors[1][7] == 2.0f);
    assert_true(config.rope.factors[1] == config.rope_store[1]);
}

static void nested_text_config_is_found(void **state) {
    (void)state;
    assert_int_equal(
        read_text("{\"model_type\":\"gemma3\",\"text_config\":{\"num_hidden_layers\":7,"
                  "\"hidden_size\":64,\"intermediate_size\":128}}"),
        STINT_OK);
    assert_int_equal(config.n_layers, 7);
    assert_int_equal(config.n_heads, 8);
    assert_int_equal(config.head_dim, 256);
}

static void stop_tokens_come_as_number_or_list(void **state) {
    (void)state;
    read_text("{\"model_type\":\"llama\",\"eos_token_id\":[3,5,3]," SIZES "}");
    assert_int_equal(config.n_stop_ids, 2);
    assert_int_equal(config.stop_ids[1], 5);
    read_text("{\"model_type\":\"llama\",\"eos_token_id\":7," SIZES "}");
    assert_int_equal(config.n_stop_ids, 1);
}

static void hostile_configs_get_one_clear_error(void **state) {
    (void)state;
    const struct {
        const char *text;
        stint_status status;
        const char *mark;
    } cases[] = {
        {"[]", STINT_E_FORMAT, "object"},
        {"{}", STINT_E_FORMAT, "model_type"},
        {"{\"model_type\":3}", STINT_E_FORMAT, "model_type"},
        {"{\"model_type\":\"nope\"," SIZES "}", STINT_E_UNSUPPORTED, "known are: llama"},
        {"{\"model_type\":\"llama\"}", STINT_E_FORMAT, "num_hidden_layers"},
        {"{\"model_type\":\"llama\",\"num_hidden_layers\":4,\"hidden_size\":64,"
         "\"num_attention_heads\":0,\"vocab_size\":9,\"intermediate_size\":8}",
         STINT_E_FORMAT, "num_attention_heads"},
        {"{\"model_type\":\"llama\",\"num_hidden_layers\":2000000000,\"hidden_size\":64,"
         "\"num_attention_heads\":4,\"vocab_size\":9,\"intermediate_size\":8}",
         STINT_E_FORMAT, "layers"},
        {"{\"model_type\":\"llama\",\"num_hidden_layers\":4,\"hidden_size\":-64,"
         "\"num_attention_heads\":4,\"vocab_size\":9,\"intermediate_size\":8}",
         STINT_E_FORMAT, "hidden_size"},
        {"{\"model_type\":\"llama\",\"num_hidden_layers\":\"4\",\"hidden_size\":64,"
         "\"num_attention_heads\":4,\"vocab_size\":9,\"intermediate_size\":8}",
         STINT_E_FORMAT, "num_hidden_layers"},
        {"{\"model_type\":\"llama\",\"num_key_value_heads\":3," SIZES "}", STINT_E_FORMAT,
         "key-value heads"},
        {"{\"model_type\":\"llama\",\"head_dim\":100000," SIZES "}", STINT_E_FORMAT, "head size"},
        {"{\"model_type\":\"llama\",\"head_dim\":15," SIZES "}", STINT_E_FORMAT, "rotary size"},
        {"{\"model_type\":\"llama\",\"hidden_act\":\"tanhish\"," SIZES "}", STINT_E_UNSUPPORTED,
         "tanhish"},
        {"{\"model_type\":\"llama\",\"rope_theta\":0," SIZES "}", STINT_E_FORMAT, "rope_theta"},
        {"{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"magic\"}," SIZES "}",
         STINT_E_UNSUPPORTED, "magic"},
        {"{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"linear\"}," SIZES "}",
         STINT_E_FORMAT, "factor"},
        {"{\"model_type\":\"phi3\",\"rope_scaling\":{\"type\":\"longrope\",\"short_factor\":[1]}"
         "," SIZES "}",
         STINT_E_FORMAT, "short_factor"},
        {"{\"model_type\":\"mixtral\",\"num_local_experts\":8,\"num_experts_per_tok\":9," SIZES "}",
         STINT_E_FORMAT, "experts"},
        {"{\"model_type\":\"gemma2\",\"layer_types\":[\"full_attention\"]," SIZES "}",
         STINT_E_FORMAT, "layer_types"},
        {"{\"model_type\":\"gemma2\",\"query_pre_attn_scalar\":0," SIZES "}", STINT_E_FORMAT,
         "scale"},
        {"{\"model_type\":\"llama\",\"rms_norm_eps\":5," SIZES "}", STINT_E_FORMAT, "rms_norm_eps"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(cases[i].text, cases[i].status, cases[i].mark);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_fills_in_what_the_file_leaves_out),
        cmocka_unit_test(gemma_says_gelu_and_means_the_tanh_form),
        cmocka_unit_test(drelu_by_name_or_by_family),
        cmocka_unit_test(hybrids_say_which_layers_attend),
        cmocka_unit_test(states_that_make_no_sense_are_refused),
        cmocka_unit_test(windows_follow_the_family),
        cmocka_unit_test(rope_scaling_in_every_spelling),
        cmocka_unit_test(nested_text_config_is_found),
        cmocka_unit_test(stop_tokens_come_as_number_or_list),
        cmocka_unit_test(hostile_configs_get_one_clear_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

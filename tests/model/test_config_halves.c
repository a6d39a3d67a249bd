// SPDX-License-Identifier: Apache-2.0
// Files that count each half of a layer as a layer: which halves become one.
#include "support/checkpoints.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define NEMOTRON                                                                                   \
    "{\"model_type\":\"nemotron_h\",\"hidden_size\":64,\"num_attention_heads\":4,"                 \
    "\"vocab_size\":100,\"intermediate_size\":128,"

static struct st_config config; // too large for a stack

static void assert_read(const char *text) {
    ts_assert_config(text, &config);
}

static void assert_refused(const char *text, const char *mark) {
    ts_assert_config_refused(text, mark, &config);
}

static void assert_layers(void) {
    static const uint8_t form[] = {ST_FORM_MAMBA, ST_FORM_MAMBA, ST_FORM_ATTENTION};
    static const uint16_t mixer_at[] = {0, 2, 3};
    assert_int_equal(config.n_layers, 3);
    assert_memory_equal(config.form, form, sizeof form);
    assert_memory_equal(config.mixer_at, mixer_at, sizeof mixer_at);
    assert_int_equal(config.ffn_at[0], 1);
    assert_int_equal(config.ffn_at[2], 4);
    assert_int_equal(st_config_blocks(&config, 1), 0);
}

static void halves_become_layers(void **state) {
    (void)state;
    assert_read(NEMOTRON "\"n_routed_experts\":8,\"hybrid_override_pattern\":\"M-M*-\"}");
    assert_layers();
    assert_int_equal(config.n_experts, 0); // no layer has them
    assert_int_equal(config.act, ST_ACT_RELU2);
    assert_int_equal(config.rope_dims, 0);
    assert_int_equal(st_config_ffn(&config, 2, 0), 128);
    assert_read(NEMOTRON "\"n_routed_experts\":8,\"moe_intermediate_size\":24,"
                         "\"moe_shared_expert_intermediate_size\":40,\"layers_block_type\":["
                         "\"mamba\",\"moe\",\"linear_attention\",\"full_attention\",\"mlp\"]}");
    assert_layers();
    assert_int_equal(st_config_blocks(&config, 0), 9);
    assert_int_equal(st_config_ffn(&config, 0, 0), 24);
    assert_int_equal(st_config_ffn(&config, 0, 8), 40);
    assert_int_equal(st_config_blocks(&config, 2), 1);
    assert_int_equal(st_config_ffn(&config, 2, 0), 128);
}

static void other_families_have_whole_layers(void **state) {
    (void)state;
    assert_read("{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":64,"
                "\"num_attention_heads\":4,\"vocab_size\":100,\"intermediate_size\":128}");
    assert_int_equal(config.mixer_at[1], 1);
    assert_int_equal(config.ffn_at[1], 1);
    assert_int_equal(st_config_blocks(&config, 1), 1);
}

static void hostile_patterns_are_refused(void **state) {
    (void)state;
    char text[2 * ST_MAX_LAYERS], pattern[ST_MAX_LAYERS + 2];
    assert_refused(NEMOTRON "\"hybrid_override_pattern\":\"-M*\"}", "layer 0");
    assert_refused(NEMOTRON "\"hybrid_override_pattern\":\"M--*\"}", "layer 2");
    assert_refused(NEMOTRON "\"hybrid_override_pattern\":\"Mx\"}", "unknown kind");
    assert_refused(NEMOTRON "\"layers_block_type\":[\"mamba\",7]}", "unknown kind");
    assert_refused(NEMOTRON "\"hybrid_override_pattern\":\"\"}", "0 layers");
    assert_refused(NEMOTRON "\"bos_token_id\":1}", "0 layers");
    assert_refused(NEMOTRON "\"moe_latent_size\":16,\"hybrid_override_pattern\":\"M*\"}", "latent");
    memset(pattern, 'M', sizeof pattern - 1);
    pattern[sizeof pattern - 1] = 0;
    snprintf(text, sizeof text, NEMOTRON "\"hybrid_override_pattern\":\"%s\"}", pattern);
    assert_refused(text, "1025 layers");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_become_layers),
        cmocka_unit_test(other_families_have_whole_layers),
        cmocka_unit_test(hostile_patterns_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Files whose layers have two mixers on one input: two layers of ours each, and factors of linears.
#include "support/checkpoints.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define FALCON(layers)                                                                             \
    "{\"model_type\":\"falcon_h1\",\"hidden_size\":64,\"num_attention_heads\":4,"                  \
    "\"vocab_size\":100,\"intermediate_size\":128,\"mamba_n_heads\":8,"                            \
    "\"num_hidden_layers\":" #layers ","

static struct st_config config; // too large for a stack

static void assert_read(const char *text) {
    ts_assert_config(text, &config);
}

static void assert_refused(const char *text, const char *mark) {
    ts_assert_config_refused(text, mark, &config);
}

static void two_mixers_become_two_layers(void **state) {
    static const uint8_t form[] = {ST_FORM_ATTENTION, ST_FORM_MAMBA, ST_FORM_ATTENTION,
                                   ST_FORM_MAMBA};
    static const uint16_t at[] = {0, 0, 1, 1};
    static const uint8_t joined[] = {0, 1, 0, 1};
    (void)state;
    assert_read(FALCON(2) "\"mamba_d_ssm\":48}");
    assert_int_equal(config.n_layers, 4);
    assert_memory_equal(config.form, form, sizeof form);
    assert_memory_equal(config.mixer_at, at, sizeof at);
    assert_memory_equal(config.joined, joined, sizeof joined);
    assert_int_equal(st_config_blocks(&config, 0), 0);
    assert_int_equal(st_config_blocks(&config, 1), 1);
    assert_int_equal(config.ffn_at[3], 1);
    assert_int_equal(config.state.n_values, 6);
    assert_true(config.state_unnormed);
    assert_read(FALCON(2) "\"mamba_d_ssm\":null,\"mamba_expand\":2,\"mamba_rms_norm\":true,"
                          "\"mamba_norm_before_gate\":false}");
    assert_int_equal(config.state.n_values, 16);
    assert_false(config.state_unnormed);
}

static void factors_are_those_of_linears(void **state) {
    (void)state;
    assert_read(FALCON(1) "\"attention_in_multiplier\":2.0,\"key_multiplier\":0.25,"
                          "\"lm_head_multiplier\":0.5,\"embedding_multiplier\":3.0,"
                          "\"mlp_multipliers\":[0.5,4.0],\"ssm_multipliers\":[1,2,3,4,5]}");
    assert_float_equal(config.linear_scale[ST_ROLE_Q], 2.0f, 0.0f);
    assert_float_equal(config.linear_scale[ST_ROLE_K], 0.5f, 0.0f);
    assert_float_equal(config.linear_scale[ST_ROLE_O], 1.0f, 0.0f);
    assert_float_equal(config.linear_scale[ST_ROLE_GATE], 0.5f, 0.0f);
    assert_float_equal(config.linear_scale[ST_ROLE_DOWN], 4.0f, 0.0f);
    assert_float_equal(config.linear_scale[ST_ROLE_UP], 0.0f, 0.0f);
    assert_float_equal(config.mixed_scale[4], 5.0f, 0.0f);
    assert_float_equal(config.logit_scale, 0.5f, 0.0f);
    assert_float_equal(config.embed_scale, 3.0f, 0.0f);
}

static void what_is_not_supported_is_refused(void **state) {
    (void)state;
    assert_refused(FALCON(513) "\"mamba_d_ssm\":48}", "513 layers");
    assert_refused(FALCON(2) "\"mamba_d_ssm\":50}", "'mamba_d_ssm' 50");
    assert_refused(FALCON(2) "\"key_multiplier\":0}", "'key_multiplier'");
    assert_refused(FALCON(2) "\"mlp_multipliers\":[1,-1]}", "'mlp_multipliers'");
    assert_refused(FALCON(2) "\"ssm_out_multiplier\":1e-60}", "'ssm_out_multiplier'");
    assert_refused(FALCON(2) "\"attention_bias\":true}", "'attention_bias'");
    assert_refused(FALCON(2) "\"mamba_rms_norm\":true}", "'mamba_norm_before_gate'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_mixers_become_two_layers),
        cmocka_unit_test(factors_are_those_of_linears),
        cmocka_unit_test(what_is_not_supported_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

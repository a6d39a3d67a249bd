// SPDX-License-Identifier: Apache-2.0
// Families with two mixers on one input in each layer (Falcon-H1): attention, and behind it the
// other form on the same input, are two layers of ours, the second with the feed-forward block.
#include "model/config.h"

#include <math.h>

stint_status st_config_join(struct st_config *c) {
    if (c->n_layers > ST_MAX_LAYERS / 2)
        return st_fail(STINT_E_FORMAT, "%u layers of two mixers: expected at most %d", c->n_layers,
                       ST_MAX_LAYERS / 2);
    c->n_layers *= 2;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        bool second = i % 2 != 0;
        c->form[i] = second ? (uint8_t)c->arch->form : ST_FORM_ATTENTION;
        c->dense[i] = second ? 0 : ST_NO_FFN;
        c->joined[i] = second;
        c->mixer_at[i] = c->ffn_at[i] = (uint16_t)(i / 2);
    }
    return STINT_OK;
}

// A factor, or one of a list; 1 where it is absent.
static stint_status read_multiplier(const json_t *json, const char *key, size_t at, float *out) {
    const json_t *value = json_object_get(json, key);
    if (json_is_array(value)) value = json_array_get(value, at);
    double number = json_is_number(value) ? json_number_value(value) : 1.0;
    *out = (float)number;
    if (number > 0.0 && number < 1e6 && *out > 0.0f) return STINT_OK;
    return st_fail(STINT_E_FORMAT, "'%s': %g makes no sense", key, number);
}

static stint_status read_linear_scales(const json_t *json, struct st_config *c) {
    static const struct {
        const char *key;
        size_t at;             // in a list
        enum st_role roles[3]; // whose outputs it scales; of inputs too, as nothing has a bias
    } multipliers[] = {
        {"attention_in_multiplier", 0, {ST_ROLE_Q, ST_ROLE_K, ST_ROLE_V}},
        {"key_multiplier", 0, {ST_ROLE_K}},
        {"attention_out_multiplier", 0, {ST_ROLE_O}},
        {"ssm_in_multiplier", 0, {ST_ROLE_CONV_IN}},
        {"ssm_out_multiplier", 0, {ST_ROLE_CONV_OUT}},
        {"mlp_multipliers", 0, {ST_ROLE_GATE}},
        {"mlp_multipliers", 1, {ST_ROLE_DOWN}},
    };
    for (size_t i = 0; i < sizeof multipliers / sizeof *multipliers; i++) {
        float factor;
        ST_TRY(read_multiplier(json, multipliers[i].key, multipliers[i].at, &factor));
        for (size_t r = 0; r < 3 && multipliers[i].roles[r]; r++) {
            float *scale = &c->linear_scale[multipliers[i].roles[r]];
            *scale = *scale != 0.0f ? *scale * factor : factor;
        }
    }
    for (size_t i = 0; i < ST_N_MIXED; i++)
        ST_TRY(read_multiplier(json, "ssm_multipliers", i, &c->mixed_scale[i]));
    return STINT_OK;
}

static stint_status refuse_biases(const json_t *json) {
    static const char *const keys[] = {"attention_bias", "mlp_bias", "projectors_bias",
                                       "mamba_proj_bias"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        bool bias = false;
        ST_TRY(st_json_bool(json, keys[i], &bias));
        if (bias) return st_fail(STINT_E_UNSUPPORTED, "'%s' is true", keys[i]);
    }
    return STINT_OK;
}

stint_status st_config_read_joint(const json_t *json, struct st_config *c) {
    uint32_t inner = 0;
    bool norm = false, norm_first = false;
    ST_TRY(refuse_biases(json));
    ST_TRY(st_config_json_size(json, "mamba_d_ssm", &inner));
    ST_TRY(st_json_bool(json, "mamba_rms_norm", &norm));
    ST_TRY(st_json_bool(json, "mamba_norm_before_gate", &norm_first));
    if (norm && norm_first) return st_fail(STINT_E_UNSUPPORTED, "'mamba_norm_before_gate' is true");
    c->state_unnormed = !norm;
    if (inner != 0 && c->state.n_heads != 0) {
        if (inner % c->state.n_heads != 0)
            return st_fail(STINT_E_FORMAT, "'mamba_d_ssm' %u does not divide by %u heads", inner,
                           c->state.n_heads);
        c->state.n_values = inner / c->state.n_heads;
    }
    ST_TRY(read_linear_scales(json, c));
    return st_config_join(c);
}

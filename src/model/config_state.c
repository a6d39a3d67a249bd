// SPDX-License-Identifier: Apache-2.0
// What config.json says of layers with recurrent state.
#include "model/config.h"

#include <string.h>

// The form of each layer as "layer_types" names it.
static stint_status read_form_names(const json_t *types, struct st_config *c) {
    static const char *const names[ST_N_FORMS][2] = {
        [ST_FORM_ATTENTION] = {"full_attention", "attention"},
        [ST_FORM_CONV] = {"conv", "conv"},
        [ST_FORM_DELTA] = {"linear_attention", "linear_attention"},
        [ST_FORM_MAMBA] = {"linear_attention", "mamba"}};
    size_t i;
    json_t *item;
    if (json_array_size(types) != c->n_layers)
        return st_fail(STINT_E_FORMAT, "'layer_types' has %zu entries for %u layers",
                       json_array_size(types), c->n_layers);
    json_array_foreach(types, i, item) {
        const char *type = json_is_string(item) ? json_string_value(item) : "no text";
        bool attends = !strcmp(type, names[0][0]) || !strcmp(type, names[0][1]);
        c->form[i] = attends ? ST_FORM_ATTENTION : (uint8_t)c->arch->form;
        if (strcmp(type, names[c->form[i]][0]) && strcmp(type, names[c->form[i]][1]))
            return st_fail(STINT_E_UNSUPPORTED, "'layer_types'[%zu] is '%.40s'", i, type);
    }
    return STINT_OK;
}

// The same by the indices of the layers with attention, as LFM2's first files have them.
static stint_status read_attention_indices(const json_t *attention, struct st_config *c) {
    size_t i;
    json_t *item;
    memset(c->form, c->arch->form, c->n_layers);
    json_array_foreach(attention, i, item) {
        json_int_t at = json_is_integer(item) ? json_integer_value(item) : -1;
        if (at < 0 || at >= c->n_layers)
            return st_fail(STINT_E_FORMAT, "'full_attn_idxs'[%zu] is not one of %u layers", i,
                           c->n_layers);
        c->form[at] = ST_FORM_ATTENTION;
    }
    return STINT_OK;
}

static stint_status read_state(const json_t *json, struct st_config *c) {
    const struct {
        const char *key;
        uint32_t *out;
    } keys[] = {
        {"conv_L_cache", &c->conv_length},
        {"linear_conv_kernel_dim", &c->conv_length},
        {"linear_num_value_heads", &c->state.n_heads},
        {"linear_num_key_heads", &c->state.n_groups},
        {"linear_key_head_dim", &c->state.n_keys},
        {"linear_value_head_dim", &c->state.n_values},
        {"mamba_d_conv", &c->conv_length},
        {"mamba_n_heads", &c->state.n_heads},
        {"mamba_n_groups", &c->state.n_groups},
        {"mamba_d_state", &c->state.n_keys},
        {"conv_kernel", &c->conv_length},
        {"mamba_num_heads", &c->state.n_heads},
        {"n_groups", &c->state.n_groups},
        {"ssm_state_size", &c->state.n_keys},
        {"mamba_head_dim", &c->state.n_values},
    };
    uint32_t expand = 0;
    ST_TRY(st_config_json_size(json, "mamba_expand", &expand));
    ST_TRY(st_json_bool(json, "mamba_conv_bias", &c->conv_bias));
    ST_TRY(st_json_bool(json, "mamba_proj_bias", &c->mix_bias));
    ST_TRY(st_json_bool(json, "use_conv_bias", &c->conv_bias));
    ST_TRY(st_json_bool(json, "use_bias", &c->mix_bias));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ST_TRY(st_config_json_size(json, keys[i].key, keys[i].out));
    c->fused_mix = (c->flags & ST_ARCH_HF_FUSED_MIX) != 0;
    if (expand != 0 && expand < 64 && c->state.n_heads != 0)
        c->state.n_values = (uint32_t)((uint64_t)expand * c->hidden / c->state.n_heads);
    return st_json_bool(json, "conv_bias", &c->conv_bias);
}

// Hybrids: which layers have no attention, and what they have.
stint_status st_config_read_forms(const json_t *json, struct st_config *c) {
    const json_t *types = json_object_get(json, "layer_types");
    const json_t *attention = json_object_get(json, "full_attn_idxs");
    uint32_t interval = 0;
    if (c->arch->form == ST_FORM_ATTENTION || c->n_layers > ST_MAX_LAYERS) return STINT_OK;
    ST_TRY(read_state(json, c));
    if (c->flags & ST_ARCH_HALVES) return STINT_OK;
    if (c->flags & ST_ARCH_JOINT) return st_config_read_joint(json, c);
    ST_TRY(st_config_json_size(json, "full_attention_interval", &interval));
    if (json_is_array(types)) return read_form_names(types, c);
    if (json_is_array(attention)) return read_attention_indices(attention, c);
    st_config_attention_every(c, interval);
    return STINT_OK;
}

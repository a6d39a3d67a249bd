// SPDX-License-Identifier: Apache-2.0
// Families whose layers differ in their heads and widths, use each other's caches, and have inputs
// of their own from each token (Gemma 4).
#include "model/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

stint_status st_config_share_caches(struct st_config *c, uint32_t n) {
    if (n >= c->n_layers && n)
        return st_fail(STINT_E_UNSUPPORTED, "%u of %u layers use the cache of another", n,
                       c->n_layers);
    for (uint32_t i = c->n_layers - n; i < c->n_layers; i++) {
        uint32_t of = c->n_layers - n;
        while (of > 0 && c->sliding[of - 1] != c->sliding[i]) of--;
        if (of == 0)
            return st_fail(STINT_E_UNSUPPORTED,
                           "layer %u uses the cache of a layer of its kind, "
                           "but none before layer %u has one",
                           i, c->n_layers - n);
        c->cache_back[i] = (uint16_t)(i - (of - 1));
        c->keys_as_values[i] = 0;
    }
    return STINT_OK;
}

stint_status st_config_split_widths(json_t *json, const struct st_arch *arch) {
    json_t *widths = json_object_get(json, "intermediate_size");
    if (!(arch->flags & ST_ARCH_LAYERS) || !json_is_array(widths)) return STINT_OK;
    json_t *first = json_array_get(widths, 0);
    if (json_object_set(json, "intermediate_sizes", widths) == 0 && first &&
        json_object_set(json, "intermediate_size", first) == 0)
        return STINT_OK;
    return st_fail(STINT_E_FORMAT, "'intermediate_size' is an empty list");
}

// By halving: it need not be fast.
double st_config_deviations(double share) {
    double low = -40.0, high = 40.0;
    for (int i = 0; i < 100; i++) {
        double middle = 0.5 * (low + high);
        if (0.5 * erfc(-middle / sqrt(2.0)) < share)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

static stint_status read_widths(const json_t *json, struct st_config *c) {
    const json_t *widths = json_object_get(json, "intermediate_sizes");
    if (!json_is_array(widths)) return STINT_OK;
    if (json_array_size(widths) != c->n_layers)
        return st_fail(STINT_E_FORMAT, "'intermediate_size' has %zu entries for %u layers",
                       json_array_size(widths), c->n_layers);
    for (uint32_t i = 0; i < c->n_layers; i++) {
        json_int_t width = json_integer_value(json_array_get(widths, i));
        if (width < 1 || width > INT32_MAX)
            return st_fail(STINT_E_FORMAT, "'intermediate_size'[%u] is no size", i);
        c->ffn_at_layer[i] = (uint32_t)width;
    }
    return STINT_OK;
}

// Shares of the gates that are to be 0; where the file does not say, of the first ten layers.
static stint_status read_sparsity(const json_t *json, struct st_config *c) {
    const json_t *pattern = json_object_get(json, "activation_sparsity_pattern");
    uint32_t n_default = c->n_layers > 10 ? 10 : 0;
    bool one = json_is_number(pattern);
    if (json_is_array(pattern) && json_array_size(pattern) != c->n_layers)
        return st_fail(STINT_E_FORMAT,
                       "'activation_sparsity_pattern' has %zu entries for %u layers",
                       json_array_size(pattern), c->n_layers);
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const json_t *value = one ? pattern : json_array_get(pattern, i);
        double share = json_is_number(value)               ? json_number_value(value)
                       : !pattern || json_is_null(pattern) ? (i < n_default ? 0.95 : 0.0)
                                                           : -1.0;
        if (!(share >= 0.0 && share < 1.0))
            return st_fail(STINT_E_FORMAT, "'activation_sparsity_pattern'[%u] is no share", i);
        c->cut[i] = share > 0.0;
        if (c->cut[i]) c->cutoff[i] = (float)st_config_deviations(share);
    }
    return STINT_OK;
}

static stint_status read_streams(const json_t *json, struct st_config *c) {
    uint32_t active = 0;
    bool scaled = true;
    ST_TRY(st_config_json_size(json, "altup_num_inputs", &c->n_streams));
    if (c->n_streams == 0) return STINT_OK;
    ST_TRY(st_config_json_size(json, "altup_active_idx", &active));
    ST_TRY(st_json_bool(json, "altup_correct_scale", &scaled));
    ST_TRY(st_config_json_size(json, "laurel_rank", &c->laurel));
    c->stream_unscaled = !scaled;
    if (active) return st_fail(STINT_E_UNSUPPORTED, "'altup_active_idx' is %u", active);
    ST_TRY(read_widths(json, c));
    return read_sparsity(json, c);
}

static stint_status refuse_forms(const json_t *json) {
    const char *both_ways = NULL;
    ST_TRY(st_json_string(json, "use_bidirectional_attention", &both_ways));
    if (both_ways && strcmp(both_ways, "vision") != 0) // which is not of texts
        return st_fail(STINT_E_UNSUPPORTED, "'use_bidirectional_attention' is '%.40s'", both_ways);
    return STINT_OK;
}

// Of what may differ between layers heads alone are known.
static stint_status refuse_keys(const json_t *entry) {
    json_t *object = (json_t *)(uintptr_t)entry; // is not written to
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        const char *key = json_object_iter_key(i);
        if (strcmp(key, "head_dim") != 0 && strcmp(key, "num_key_value_heads") != 0)
            return st_fail(STINT_E_UNSUPPORTED, "'per_layer_config' has '%.40s'", key);
    }
    return STINT_OK;
}

// One layer's entry of "per_layer_config", as newer files say what older ones say of all layers
// without a window.
static stint_status read_entry(const json_t *entry, uint32_t layer, struct st_config *c) {
    struct st_heads heads = st_config_heads(c, layer);
    ST_TRY(refuse_keys(entry));
    ST_TRY(st_config_json_size(entry, "head_dim", &heads.dim));
    ST_TRY(st_config_json_size(entry, "num_key_value_heads", &heads.n_kv));
    if (c->sliding[layer] && (heads.dim != c->local.dim || heads.n_kv != c->local.n_kv))
        return st_fail(STINT_E_UNSUPPORTED, "'per_layer_config': heads of layer %u, with a window",
                       layer);
    c->head_dim = c->sliding[layer] ? c->head_dim : heads.dim;
    c->n_kv_heads = c->sliding[layer] ? c->n_kv_heads : heads.n_kv;
    return STINT_OK;
}

static stint_status read_entries(const json_t *entries, struct st_config *c) {
    uint32_t dim = 0, n_kv = 0;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        char key[16];
        snprintf(key, sizeof key, "%u", i);
        const json_t *entry = json_object_get(entries, key);
        c->head_dim = c->local.dim;
        c->n_kv_heads = c->local.n_kv;
        if (json_is_object(entry)) ST_TRY(read_entry(entry, i, c));
        if (c->sliding[i]) continue;
        if (dim && (dim != c->head_dim || n_kv != c->n_kv_heads))
            return st_fail(STINT_E_UNSUPPORTED,
                           "'per_layer_config': heads of layer %u differ from "
                           "those of other layers without a window",
                           i);
        dim = c->head_dim;
        n_kv = c->n_kv_heads;
    }
    c->head_dim = dim ? dim : c->local.dim;
    c->n_kv_heads = n_kv ? n_kv : c->local.n_kv;
    return STINT_OK;
}

static stint_status read_heads(const json_t *json, struct st_config *c) {
    const json_t *entries = json_object_get(json, "per_layer_config");
    bool shared = false;
    ST_TRY(st_json_bool(json, "attention_k_eq_v", &shared));
    for (uint32_t i = 0; i < c->n_layers; i++) c->keys_as_values[i] = shared && !c->sliding[i];
    c->local = (struct st_heads){c->n_kv_heads, c->head_dim, c->head_dim};
    if (json_is_object(entries)) return read_entries(entries, c);
    ST_TRY(st_config_json_size(json, "global_head_dim", &c->head_dim));
    if (shared) ST_TRY(st_config_json_size(json, "num_global_key_value_heads", &c->n_kv_heads));
    return STINT_OK;
}

// Whether the layers have experts: files without them may name their number too.
static stint_status read_experts(const json_t *json, bool wide, struct st_config *c) {
    bool mixture = false;
    ST_TRY(st_json_bool(json, "enable_moe_block", &mixture));
    if (!mixture) {
        c->n_experts = 0;
        c->ffn = c->dense_ffn;
        return STINT_OK;
    }
    if (c->n_experts == 0) return st_fail(STINT_E_FORMAT, "'num_experts' is missing");
    if (wide) return st_fail(STINT_E_UNSUPPORTED, "'use_double_wide_mlp' with experts");
    ST_TRY(st_config_json_size(json, "expert_intermediate_size", &c->ffn)); // the older name
    return st_config_json_size(json, "top_k_experts", &c->n_experts_used);
}

stint_status st_config_read_layers(const json_t *json, struct st_config *c) {
    uint32_t n_shared = 0;
    bool wide = false;
    if (!(c->flags & ST_ARCH_LAYERS)) return STINT_OK;
    if (c->n_layers == 0 || c->n_layers > ST_MAX_LAYERS)
        return st_fail(STINT_E_FORMAT, "%u layers: expected 1..%d", c->n_layers, ST_MAX_LAYERS);
    if (c->window == 0) return st_fail(STINT_E_UNSUPPORTED, "'sliding_window' is 0");
    ST_TRY(refuse_forms(json));
    ST_TRY(read_heads(json, c));
    ST_TRY(st_config_json_size(json, "num_kv_shared_layers", &n_shared));
    ST_TRY(st_config_share_caches(c, n_shared));
    ST_TRY(st_json_bool(json, "use_double_wide_mlp", &wide));
    ST_TRY(read_experts(json, wide, c));
    for (uint32_t i = 0; i < c->n_layers && wide; i++)
        c->ffn_at_layer[i] = c->cache_back[i] ? 2 * c->ffn : c->ffn;
    ST_TRY(read_streams(json, c));
    ST_TRY(st_config_json_size(json, "hidden_size_per_layer_input", &c->layer_input));
    return st_config_json_size(json, "vocab_size_per_layer_input", &c->layer_vocab);
}

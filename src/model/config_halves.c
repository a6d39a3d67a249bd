// SPDX-License-Identifier: Apache-2.0
// Families whose files count each half of a layer as a layer (Nemotron-H): a mixer and the
// feed-forward block behind it are one of ours.
#include "model/config.h"

#include <string.h>

static stint_status add_half(char kind, size_t at, struct st_config *c) {
    uint32_t last = c->n_layers - 1;
    if (kind == 'M' || kind == '*') {
        c->form[c->n_layers] = kind == '*' ? ST_FORM_ATTENTION : (uint8_t)c->arch->form;
        c->dense[c->n_layers] = ST_NO_FFN;
        c->mixer_at[c->n_layers++] = (uint16_t)at;
        return STINT_OK;
    }
    if (kind != '-' && kind != 'E')
        return st_fail(STINT_E_UNSUPPORTED, "layer %zu is of an unknown kind", at);
    if (c->n_layers == 0 || c->dense[last] != ST_NO_FFN)
        return st_fail(STINT_E_UNSUPPORTED,
                       "layer %zu is a feed-forward block behind neither attention nor a state",
                       at);
    c->dense[last] = kind == '-';
    c->ffn_at[last] = (uint16_t)at;
    return STINT_OK;
}

stint_status st_config_halves(const char *kinds, size_t n, struct st_config *c) {
    if (n == 0 || n > ST_MAX_LAYERS)
        return st_fail(STINT_E_FORMAT, "%zu layers: expected 1..%d", n, ST_MAX_LAYERS);
    c->n_layers = 0;
    for (size_t i = 0; i < n; i++) ST_TRY(add_half(kinds[i], i, c));
    return STINT_OK;
}

static char kind_of(const char *name) {
    static const struct {
        const char *name;
        char kind;
    } kinds[] = {{"mamba", 'M'},     {"linear_attention", 'M'},
                 {"attention", '*'}, {"full_attention", '*'},
                 {"mlp", '-'},       {"moe", 'E'}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, name)) return kinds[i].kind;
    return '?';
}

stint_status st_config_read_halves(const json_t *json, struct st_config *c) {
    const json_t *types = json_object_get(json, "layers_block_type");
    const char *pattern = NULL;
    char kinds[ST_MAX_LAYERS];
    uint32_t latent = 0;
    json_t *item;
    size_t i;
    if (!(c->flags & ST_ARCH_HALVES)) return STINT_OK;
    ST_TRY(st_json_string(json, "hybrid_override_pattern", &pattern));
    ST_TRY(st_config_json_size(json, "moe_latent_size", &latent));
    if (latent) return st_fail(STINT_E_UNSUPPORTED, "experts of a latent input of %u", latent);
    if (json_array_size(types) > ST_MAX_LAYERS)
        return st_fail(STINT_E_FORMAT, "%zu layers", json_array_size(types));
    json_array_foreach(types, i, item) kinds[i] =
        kind_of(json_is_string(item) ? json_string_value(item) : "");
    size_t n = pattern ? strlen(pattern) : json_array_size(types);
    ST_TRY(st_config_halves(pattern ? pattern : kinds, n, c));
    // Files of models without a mixture may name the sizes that one would have.
    bool routed = memchr(pattern ? pattern : kinds, 'E', n) != NULL;
    if (!routed) c->n_experts = 0;
    return routed ? STINT_OK : st_config_json_size(json, "intermediate_size", &c->ffn);
}

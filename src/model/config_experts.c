// SPDX-License-Identifier: Apache-2.0
// What config.json says of a mixture: how experts are selected, which layers have them, what all
// tokens share.
#include "base/size.h"
#include "model/config.h"

#include <string.h>

static stint_status read_router(const json_t *json, struct st_config *c) {
    struct st_router *r = &c->router;
    const char *method = NULL, *function = NULL;
    bool normalised = !(c->flags & ST_ARCH_ROUTE_ALL);
    r->scale = 1.0;
    r->biased = (c->flags & ST_ARCH_ROUTE_BIAS) != 0;
    ST_TRY(st_json_string(json, "scoring_func", &function));
    r->sigmoid =
        function ? strcmp(function, "sigmoid") == 0 : (c->flags & ST_ARCH_ROUTE_SIGMOID) != 0;
    r->group_sums = r->sigmoid;
    ST_TRY(st_json_bool(json, "use_expert_bias", &r->biased));
    ST_TRY(st_json_bool(json, "norm_topk_prob", &normalised));
    ST_TRY(st_json_number(json, "routed_scaling_factor", 0.0, 1e6, &r->scale));
    ST_TRY(st_config_json_size(json, "n_group", &r->n_groups));
    ST_TRY(st_config_json_size(json, "topk_group", &r->n_groups_used));
    ST_TRY(st_json_string(json, "topk_method", &method));
    if (method && strcmp(method, "greedy") == 0) r->n_groups = 0;
    r->shares = !normalised;
    return STINT_OK;
}

// Which layers of a mixture have no experts: the first ones, those between, those of a list.
static stint_status read_dense(const json_t *json, struct st_config *c) {
    if (c->flags & ST_ARCH_HALVES) return STINT_OK; // config_halves.c
    uint32_t first = 0, step = 1, last = c->n_layers - 1;
    const json_t *only = json_object_get(json, "mlp_only_layers");
    json_t *item;
    size_t i;
    ST_TRY(st_config_json_size(json, "first_k_dense_replace", &first));
    ST_TRY(st_config_json_size(json, "moe_layer_start_index", &first));
    ST_TRY(st_config_json_size(json, "num_dense_layers", &first));
    ST_TRY(st_config_json_size(json, "decoder_sparse_step", &step));
    ST_TRY(st_config_json_size(json, "moe_layer_interval", &step));
    int64_t end = -1;
    ST_TRY(st_json_int(json, "moe_layer_end_index", -1, INT32_MAX, &end));
    if (end >= 0) last = (uint32_t)end;
    for (uint32_t l = 0; l < c->n_layers && l < ST_MAX_LAYERS; l++)
        c->dense[l] = l < first || l > last || step == 0 || (l + 1) % step != 0;
    json_array_foreach(json_object_get(json, "mlp_layer_types"), i,
                       item) if (i < c->n_layers && i < ST_MAX_LAYERS && json_is_string(item))
        c->dense[i] = strcmp(json_string_value(item), "dense") == 0;
    json_array_foreach(only, i, item) {
        json_int_t at = json_is_integer(item) ? json_integer_value(item) : -1;
        if (at < 0 || at >= c->n_layers || at >= ST_MAX_LAYERS)
            return st_fail(STINT_E_FORMAT, "'mlp_only_layers'[%zu] is not one of %u layers", i,
                           c->n_layers);
        c->dense[at] = 1;
    }
    return STINT_OK;
}

stint_status st_config_read_mixture(const json_t *json, struct st_config *c) {
    uint32_t n_shared = 0;
    ST_TRY(read_router(json, c));
    ST_TRY(read_dense(json, c));
    ST_TRY(st_config_json_size(json, "n_shared_experts", &n_shared));
    ST_TRY(st_config_json_size(json, "moe_num_shared_experts", &n_shared));
    if (n_shared > ST_MAX_EXPERTS) return st_fail(STINT_E_FORMAT, "%u shared experts", n_shared);
    c->shared_ffn = (uint32_t)st_min((uint64_t)n_shared * c->ffn, UINT32_MAX);
    ST_TRY(st_config_json_size(json, "shared_intermediate_size", &c->shared_ffn));
    ST_TRY(st_config_json_size(json, "moe_shared_expert_intermediate_size", &c->shared_ffn));
    if (c->flags & ST_ARCH_LAYERS) c->shared_ffn = c->dense_ffn; // Gemma 4
    return st_config_json_size(json, "shared_expert_intermediate_size", &c->shared_ffn);
}

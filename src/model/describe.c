// SPDX-License-Identifier: Apache-2.0
// What a model is and what a token of it costs, counted from the bound weights.
#include "model/graph.h"
#include "model/model.h"

#include "base/size.h"

#include <string.h>

static const char *const act_names[ST_N_ACTS] = {
#define X(id, name) name,
    ST_ACT_LIST(X)
#undef X
};

static const char *const source_names[] = {
    [ST_SOURCE_HF] = "huggingface", [ST_SOURCE_GGUF] = "gguf", [ST_SOURCE_SHAPE] = "shape"};

struct totals {
    uint64_t items, bytes;
};

static void add_linear(const struct st_linear_weight *w, uint64_t times, struct totals *t) {
    if (!w->data) return;
    t->items += (uint64_t)w->n_out * w->n_in * times;
    t->bytes += (uint64_t)w->n_out * w->row_bytes * times;
}

// All linears of the layers that one token goes through.
static struct totals count_layers(const struct stint_model *m) {
    struct totals t = {0, 0};
    uint64_t used = st_max(1, m->config.n_experts_used);
    for (uint32_t i = 0; i < m->config.n_layers; i++) {
        const struct st_layer *layer = &m->weights.layers[i];
        const struct st_linear_weight *plain[] = {&layer->q, &layer->k, &layer->v, &layer->o,
                                                  &layer->router};
        for (size_t p = 0; p < sizeof plain / sizeof *plain; p++) add_linear(plain[p], 1, &t);
        add_linear(&layer->ffn->gate, used, &t);
        add_linear(&layer->ffn->up, used, &t);
        add_linear(&layer->ffn->down, used, &t);
    }
    return t;
}

// The type most weight bytes have.
static const char *main_type(const struct st_tensors *tensors) {
    uint64_t bytes[ST_N_DTYPES] = {0};
    enum st_dtype best = ST_DTYPE_F32;
    for (size_t i = 0; i < st_tensors_count(tensors); i++) {
        const struct st_tensor *t = st_tensors_at(tensors, i);
        bytes[t->dtype] += t->bytes;
        if (bytes[t->dtype] > bytes[best]) best = t->dtype;
    }
    return st_dtype_traits(best)->name;
}

static void describe_costs(const struct stint_model *m, stint_model_info *out) {
    const struct st_tensors *tensors = m->checkpoint.tensors;
    for (size_t i = 0; i < st_tensors_count(tensors); i++) {
        const struct st_tensor *t = st_tensors_at(tensors, i);
        uint64_t items = 1;
        for (uint32_t d = 0; d < t->n_dims; d++) items *= t->dims[d];
        out->n_parameters += items;
        out->weight_bytes += t->bytes;
    }
    struct totals layers = count_layers(m), head = {0, 0};
    add_linear(&m->weights.head, 1, &head);
    out->linear_ops_per_token = 2 * layers.items;
    out->bytes_per_decoded_token = layers.bytes + head.bytes;
    out->kv_bytes_per_token_f32 =
        2ull * m->config.n_layers * m->config.n_kv_heads * m->config.head_dim * sizeof(float);
}

stint_status stint_model_describe(const stint_model *model, stint_model_info *info) {
    if (!model || !info || info->size == 0)
        return st_fail(STINT_E_ARG, "info->size must be set to sizeof(stint_model_info)");
    const struct st_config *c = &model->config;
    stint_model_info out = {
        .size = info->size,
        .architecture = c->arch->name,
        .source = source_names[model->checkpoint.source],
        .weight_type = main_type(model->checkpoint.tensors),
        .activation = act_names[c->act],
        .norm = c->norm == ST_NORM_RMS ? "rmsnorm" : "layernorm",
        .rope_scaling = st_rope_scaling_name(c->rope.scaling),
        .chat_template = st_chat_name(model->chat_format),
        .n_layers = c->n_layers,
        .n_heads = c->n_heads,
        .n_kv_heads = c->n_kv_heads,
        .head_dim = c->head_dim,
        .hidden = c->hidden,
        .ffn = c->ffn,
        .n_experts = c->n_experts,
        .n_experts_used = c->n_experts_used,
        .vocab = c->vocab,
        .context = c->context,
        .window = c->window,
        .rope_dims = c->rope_dims,
        .rope_theta = (float)c->rope.theta,
        .subgraphs_per_layer = ST_N_SUBGRAPHS,
        .static_subgraphs_per_layer = st_graph_static_per_layer(),
    };
    describe_costs(model, &out);
    memcpy(info, &out, st_min(info->size, sizeof out));
    return STINT_OK;
}

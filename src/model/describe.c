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
    [ST_SOURCE_HF] = "huggingface", [ST_SOURCE_GGUF] = "gguf", [ST_SOURCE_PRESET] = "preset"};

struct totals {
    uint64_t items, bytes;
};

static void add_linear(const struct st_linear_weight *w, uint64_t times, struct totals *t) {
    if (!w->data || w->nested) return;
    t->items += (uint64_t)w->n_out * w->n_in * times;
    t->bytes += (uint64_t)w->n_out * w->row_bytes * times;
}

static void add_stage(const struct st_stage *stage, uint64_t times, struct totals *t) {
    const struct st_int8_weight *w = &stage->weight;
    uint64_t rows = 0;
    for (uint32_t i = 0; i < stage->n_parts; i++) rows += stage->rows[i];
    if (stage->epilogue == ST_EPILOGUE_GATED) rows *= 2;
    t->items += rows * w->n_in * times;
    t->bytes += (uint64_t)w->n_panels * st_int8_panel_bytes(w->n_in) * times;
}

static void add_int8_ffn(const struct st_layer_int8 *layer, uint64_t times, struct totals *t) {
    add_stage(&layer->ffn->up, times, t);
    add_stage(&layer->ffn->down, times, t);
}

// The INT8 ones of one layer, with this many of its feed-forward blocks.
static void add_int8_layer(const struct stint_model *m, uint32_t i, uint64_t n_ffn,
                           struct totals *t) {
    const struct st_layer_int8 *layer = &m->int8.layers[i];
    add_stage(&layer->qkv, 1, t);
    add_stage(&layer->o, 1, t);
    add_int8_ffn(layer, n_ffn, t);
}

// What the precisions [low, high] of one linear take; the codes of one are part of the next.
static uint64_t nested_bytes(const struct st_nested_weight *w, unsigned low, unsigned high) {
    if (!w) return 0;
    size_t rows = st_nested_padded_rows(w->n_out);
    return st_nested_code_bytes(w->n_out, w->n_in, high) +
           st_nested_tables_bytes(w->n_out, low, high) + rows * sizeof(float) +
           w->n_outliers * (high - low + 2) * sizeof(float);
}

// The same of n_ffn feed-forward blocks of every layer and of everything else.
static uint64_t count_nested(const struct stint_model *m, unsigned low, unsigned high,
                             uint32_t n_ffn) {
    uint64_t bytes = nested_bytes(m->weights.head.nested, low, high);
    for (uint32_t i = 0; i < m->config.n_layers; i++) {
        const struct st_layer *l = &m->weights.layers[i];
        const struct st_linear_weight *plain[] = {&l->q, &l->k, &l->v, &l->o};
        for (size_t p = 0; p < 4; p++) bytes += nested_bytes(plain[p]->nested, low, high);
        for (uint32_t e = 0; e < n_ffn; e++)
            bytes += nested_bytes(l->ffn[e].gate.nested, low, high) +
                     nested_bytes(l->ffn[e].up.nested, low, high) +
                     nested_bytes(l->ffn[e].down.nested, low, high);
    }
    return bytes;
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
        if (m->int8.layers) add_int8_layer(m, i, used, &t);
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

uint64_t stint_model_bytes_per_token(const stint_model *m, uint32_t bits) {
    stint_model_info info = {.size = sizeof info};
    stint_model_describe(m, &info);
    if (!st_nested_has(&m->nested, bits)) return info.bytes_per_decoded_token;
    uint64_t bytes = count_nested(m, bits, bits, (uint32_t)st_max(1, m->config.n_experts_used));
    struct totals neurons = {0, 0};
    for (uint32_t i = 0; i < m->config.n_layers; i++) {
        const struct st_linear_weight *router = &m->weights.layers[i].router;
        bytes += (uint64_t)router->n_out * router->row_bytes;
        if (m->neurons.layers) add_int8_ffn(&m->int8.layers[i], 1, &neurons);
    }
    return bytes + neurons.bytes;
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
    struct totals layers = count_layers(m), head = {0, 0}, int8 = {0, 0};
    if (m->int8.layers) {
        add_stage(&m->int8.head, 1, &head);
        for (uint32_t i = 0; i < m->config.n_layers; i++)
            add_int8_layer(m, i, st_max(1, m->config.n_experts), &int8);
        out->n_parameters += int8.items + (m->config.tied ? 0 : head.items);
        json_int_t counted = json_integer_value(json_object_get(m->checkpoint.meta, "parameters"));
        if (counted > 0) out->n_parameters = (uint64_t)counted; // with biases, of the source
        out->weight_bytes += int8.bytes + head.bytes;
    } else {
        add_linear(&m->weights.head, 1, &head);
    }
    if (m->nested.high) {
        out->nested_bytes = count_nested(m, m->nested.low, m->nested.high,
                                         (uint32_t)st_max(1, m->config.n_experts));
        out->weight_bytes += out->nested_bytes;
    }
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
        .weight_type = model->int8.layers ? "int8" : main_type(model->checkpoint.tensors),
        .activation = act_names[c->act],
        .norm = c->norm == ST_NORM_RMS ? "rmsnorm" : "layernorm",
        .rope_scaling = st_rope_scaling_name(c->rope.scaling),
        .chat_template = st_chat_name(st_chat_builtin(model->chat)),
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
        .exec = model->int8.layers ? STINT_EXEC_NPU : STINT_EXEC_FLOAT,
        .nested_low = model->nested.low,
        .nested_high = model->nested.high,
        .subgraphs_per_layer = ST_N_SUBGRAPHS,
        .static_subgraphs_per_layer = st_graph_static_per_layer(),
    };
    describe_costs(model, &out);
    memcpy(info, &out, st_min(info->size, sizeof out));
    return STINT_OK;
}

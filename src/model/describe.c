// SPDX-License-Identifier: Apache-2.0
// What a model is and what a token of it costs.
#include "model/graph.h"
#include "model/model.h"
#include "model/step_weights.h"

#include "base/size.h"

#include <string.h>

static const char *const act_names[ST_N_ACTS] = {
#define X(id, name) name,
    ST_ACT_LIST(X)
#undef X
};

static const char *const source_names[] = {
    [ST_SOURCE_HF] = "huggingface", [ST_SOURCE_GGUF] = "gguf", [ST_SOURCE_PRESET] = "preset"};

static const char *const left_out_names[] = {[0] = "",
                                             [ST_LEFT_OUT_VISION] = "vision",
                                             [ST_LEFT_OUT_AUDIO] = "audio",
                                             [ST_LEFT_OUT_VISION | ST_LEFT_OUT_AUDIO] =
                                                 "vision, audio"};

const char *stint_exec_name(stint_exec exec) {
    static const char *const names[] = {
        [STINT_EXEC_FLOAT] = "float", [STINT_EXEC_NPU] = "npu", [STINT_EXEC_FAST] = "fast"};
    bool known = exec > STINT_EXEC_DEFAULT && exec <= STINT_EXEC_FAST;
    return known ? names[exec] : "default";
}

struct totals {
    uint64_t weights, bytes;
};

static void add(const struct st_weight_piece *piece, struct totals *t) {
    t->weights += piece->n_weights;
    t->bytes += piece->bytes;
}

// A step's, by where they are.
struct step {
    struct totals layers, head;
};

static void add_to_step(void *context, const struct st_weight_piece *piece) {
    struct step *s = context;
    add(piece, piece->linear.role == ST_INT8_HEAD ? &s->head : &s->layers);
}

// A package's, by what they are.
struct stored {
    struct totals int8, int8_head, nested;
};

static void add_to_stored(void *context, const struct st_weight_piece *piece) {
    struct stored *s = context;
    bool head = piece->linear.role == ST_INT8_HEAD;
    if (piece->kind == ST_WEIGHT_INT8)
        add(piece, head ? &s->int8_head : &s->int8);
    else
        add(piece, &s->nested);
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
    struct step step = {0};
    st_step_weights_each(m, bits, add_to_step, &step);
    return step.layers.bytes + step.head.bytes;
}

static void describe_tensors(const struct st_tensors *tensors, stint_model_info *out) {
    for (size_t i = 0; i < st_tensors_count(tensors); i++) {
        const struct st_tensor *t = st_tensors_at(tensors, i);
        uint64_t items = 1;
        for (uint32_t d = 0; d < t->n_dims; d++) items *= t->dims[d];
        out->n_parameters += items;
        out->weight_bytes += t->bytes;
    }
}

static void describe_costs(const struct stint_model *m, stint_model_info *out) {
    struct stored stored = {0};
    struct step step = {0};
    describe_tensors(m->checkpoint.tensors, out);
    st_stored_linears_each(m, add_to_stored, &stored);
    st_step_weights_each(m, 0, add_to_step, &step);
    out->n_parameters += stored.int8.weights + (m->config.tied ? 0 : stored.int8_head.weights);
    out->weight_bytes += stored.int8.bytes + stored.int8_head.bytes + stored.nested.bytes;
    out->nested_bytes = stored.nested.bytes;
    out->embedding = m->config.embed;
    json_int_t counted = json_integer_value(json_object_get(m->checkpoint.meta, "parameters"));
    if (m->int8.layers && counted > 0)
        out->n_parameters = (uint64_t)counted; // with biases, of the source
    out->linear_ops_per_token = 2 * step.layers.weights;
    out->bytes_per_decoded_token = step.layers.bytes + step.head.bytes;
    for (uint32_t i = 0; i < m->config.n_layers; i++) {
        struct st_heads heads = st_config_heads(&m->config, i);
        if (st_config_has_cache(&m->config, i))
            out->kv_bytes_per_token_f32 +=
                (m->config.latent.rank ? 1ull : 2ull) * heads.n_kv * heads.dim * sizeof(float);
    }
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
        .exec = model->int8.layers ? STINT_EXEC_NPU
                : model->fast      ? STINT_EXEC_FAST
                                   : STINT_EXEC_FLOAT,
        .nested_low = model->nested.low,
        .nested_high = model->nested.high,
        .subgraphs_per_layer = ST_N_SUBGRAPHS,
        .static_subgraphs_per_layer = st_graph_static_per_layer(),
        .n_conv_layers = c->n_form[ST_FORM_CONV],
        .n_state_layers = st_config_n_recurrent(c) - c->n_form[ST_FORM_CONV],
        .state_heads = c->state.n_heads,
        .state_keys = c->state.n_keys,
        .state_values = c->state.n_values,
        .conv_length = st_config_n_recurrent(c) ? c->conv_length : 0,
        .left_out = left_out_names[c->left_out],
    };
    describe_costs(model, &out);
    memcpy(info, &out, st_min(info->size, sizeof out));
    return STINT_OK;
}

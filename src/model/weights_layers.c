// SPDX-License-Identifier: Apache-2.0
// Binds tokens' inputs of each layer, what a layer does with its own (session/layer_input.c), and
// what several hidden states of a token need (session/streams.c).
#include "kernels/dequantize.h"
#include "model/binder.h"

#include <math.h>

// One linear each, or all in one tensor.
static stint_status bind_states(const struct st_binder *b, enum st_role role,
                                struct st_linear_weight linears[ST_MAX_STREAMS - 1]) {
    uint32_t n = b->config->hidden, n_linears = b->config->n_streams - 1;
    uint64_t dims[] = {n_linears, n, n};
    struct st_tensor t = {0};
    bool found;
    if (b->source->gguf) ST_TRY(st_bind_find(b, role, ".weight", 0, 0, 3, dims, true, &t, &found));
    for (uint32_t i = 0; i < n_linears; i++)
        if (b->source->gguf)
            st_bind_rows(&t, (uint64_t)i * n, n, n, &linears[i]);
        else
            ST_TRY(st_bind_linear(b, role, i, n, n, false, &linears[i]));
    return STINT_OK;
}

// A small matrix as floats.
static stint_status bind_matrix(const struct st_binder *b, enum st_role role, uint32_t i,
                                uint32_t rows, uint32_t columns, const float **out) {
    uint64_t dims[] = {rows, columns};
    struct st_tensor t;
    bool found;
    ST_TRY(st_bind_find(b, role, ".weight", i, 0, 2, dims, true, &t, &found));
    float *copy = ST_TAKE(b->arena, float, (size_t)rows *columns);
    if (copy) st_dequantize_select(0)->fn[t.dtype](t.data, 0, (size_t)rows * columns, copy);
    *out = copy;
    return STINT_OK;
}

static stint_status bind_streams(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    const struct st_config *c = b->config;
    struct st_stream_weight *w = &layer->streams;
    uint32_t n = c->n_streams;
    if (n == 0) return STINT_OK;
    ST_TRY(st_bind_linear(b, ST_ROLE_STREAM_ROUTER, i, n, c->hidden, false, &w->router));
    w->router.scale = 1.0f / (float)c->hidden;
    ST_TRY(st_bind_norm(b, ST_ROLE_STREAM_ROUTER_NORM, i, c->hidden, true, &w->router_norm));
    ST_TRY(bind_matrix(b, ST_ROLE_STREAM_PREDICT, i, n * n, n, &w->predict));
    ST_TRY(bind_matrix(b, ST_ROLE_STREAM_CORRECT, i, n, n, &w->correct));
    if (!c->stream_unscaled)
        ST_TRY(st_bind_vector(b, ST_ROLE_STREAM_SCALE, b->source->gguf ? ".weight" : "", i, 0,
                              c->hidden, true, 0.0f, &w->scale));
    ST_TRY(st_bind_linear(b, ST_ROLE_LAUREL_IN, i, c->laurel, c->hidden, false, &layer->laurel_in));
    ST_TRY(
        st_bind_linear(b, ST_ROLE_LAUREL_OUT, i, c->hidden, c->laurel, false, &layer->laurel_out));
    return st_bind_norm(b, ST_ROLE_LAUREL_NORM, i, c->hidden, true, &layer->laurel_norm);
}

stint_status st_bind_layer_inputs(const struct st_binder *b, struct st_weights *w) {
    const struct st_config *c = b->config;
    uint32_t n = c->layer_input, all = c->n_layers * n;
    if (c->n_streams) ST_TRY(bind_states(b, ST_ROLE_STREAM_IN, w->stream_in));
    if (c->n_streams) ST_TRY(bind_states(b, ST_ROLE_STREAM_OUT, w->stream_out));
    if (n == 0) return STINT_OK;
    ST_TRY(st_bind_linear(b, ST_ROLE_LAYER_EMBED, 0, c->layer_vocab, all, false, &w->layer_embed));
    ST_TRY(st_bind_linear(b, ST_ROLE_LAYER_PROJECT, 0, all, c->hidden, false, &w->layer_project));
    w->layer_project.scale = (float)(1.0 / sqrt(c->hidden));
    return st_bind_norm(b, ST_ROLE_LAYER_PROJECT_NORM, 0, n, true, &w->layer_project_norm);
}

stint_status st_bind_layer_input(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    const struct st_config *c = b->config;
    uint32_t n = c->layer_input;
    ST_TRY(bind_streams(b, i, layer));
    if (st_bind_has_role(b, ST_ROLE_LAYER_SCALE))
        ST_TRY(st_bind_vector(b, ST_ROLE_LAYER_SCALE, b->source->gguf ? ".weight" : "", i, 0, 1,
                              false, 0.0f, &layer->scale));
    if (n == 0) return STINT_OK;
    ST_TRY(st_bind_linear(b, ST_ROLE_LAYER_GATE, i, n, c->hidden, false, &layer->input_gate));
    ST_TRY(st_bind_linear(b, ST_ROLE_LAYER_OUT, i, c->hidden, n, false, &layer->input_out));
    return st_bind_norm(b, ST_ROLE_LAYER_OUT_NORM, i, c->hidden, true, &layer->input_norm);
}

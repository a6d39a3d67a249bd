// SPDX-License-Identifier: Apache-2.0
// Several hidden states of a token side by side, of which a layer computes the first alone
// (alternating updates, Baykal et al. 2023; Gemma 3n). Before a layer all of them are predicted
// from each other; what the layer made of the first then corrects them all, by factors that
// depend on the token. At its attention the layer has a residual sum of low rank beside the plain
// one. All linears here stay in float.
#include "session/pass.h"

#include "session/linear/op.h"

#include <math.h>
#include <string.h>

static const float half_variance = 0.70710678f;

static float *stream_of(const struct st_run *r, uint32_t stream, size_t t) {
    size_t width = r->s->model->config.hidden;
    if (stream == 0) return r->buffers->x + t * width;
    return r->buffers->streams + ((stream - 1) * r->s->chunk_len + t) * width;
}

static double mean_square(const float *x, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sum / (double)n;
}

// What gives y the magnitude of x.
static float factor_of(const float *x, const float *y, size_t n) {
    return (float)(sqrt(mean_square(x, n)) / sqrt(fmax(mean_square(y, n), 1e-5)));
}

stint_status st_streams_begin(const struct st_run *r) {
    const struct st_config *c = &r->s->model->config;
    for (uint32_t i = 1; i < c->n_streams; i++) {
        float *to = stream_of(r, i, 0);
        ST_TRY(st_lone_linear(r, r->buffers->x, r->batch->n, &r->s->model->weights.stream_in[i - 1],
                              to));
        for (size_t t = 0; t < r->batch->n; t++) {
            float *y = to + t * c->hidden;
            float factor = factor_of(stream_of(r, 0, t), y, c->hidden);
            r->s->kernels.elementwise->scale(factor, y, c->hidden, y);
        }
    }
    return STINT_OK;
}

// Factors of the batch's tokens, [n, n_streams], from their first state.
static stint_status route(const struct st_run *r) {
    const struct st_stream_weight *w = &r->s->model->weights.layers[r->layer].streams;
    struct st_chunk_buffers *b = r->buffers;
    size_t n = r->batch->n * r->s->model->config.n_streams;
    st_pass_norm(r, &w->router_norm, b->x, r->batch->n, b->normed);
    ST_TRY(st_lone_linear(r, b->normed, r->batch->n, &w->router, b->stream_routes));
    for (size_t i = 0; i < n; i++) b->stream_routes[i] = tanhf(b->stream_routes[i]);
    return STINT_OK;
}

// Row `row` of a matrix [..., n_streams] times a token's factors.
static float mix(const struct st_run *r, size_t t, const float *matrix, size_t row) {
    size_t n = r->s->model->config.n_streams;
    const float *routes = r->buffers->stream_routes + t * n;
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++) sum += matrix[row * n + i] * routes[i];
    return sum;
}

static void predict_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct st_run *r = context;
    const struct st_config *c = &r->s->model->config;
    const struct st_stream_weight *w = &r->s->model->weights.layers[r->layer].streams;
    uint32_t n = c->n_streams;
    float factors[ST_MAX_STREAMS * ST_MAX_STREAMS], old[ST_MAX_STREAMS], *states[ST_MAX_STREAMS];
    for (uint32_t i = 0; i < n; i++) states[i] = stream_of(r, i, t);
    for (size_t i = 0; i < (size_t)n * n; i++) factors[i] = mix(r, t, w->predict, i);
    for (size_t d = 0; d < c->hidden; d++) {
        for (uint32_t i = 0; i < n; i++) old[i] = states[i][d];
        for (uint32_t to = 0; to < n; to++)
            for (uint32_t from = 0; from < n; from++)
                states[to][d] += factors[to * n + from] * old[from];
    }
    memcpy(r->buffers->predicted + t * c->hidden, states[0], c->hidden * sizeof(float));
}

stint_status st_streams_predict(const struct st_run *r) {
    ST_TRY(route(r));
    st_pool_run(r->group->pool, predict_token, (void *)(uintptr_t)r, r->batch->n);
    return STINT_OK;
}

stint_status st_laurel_make(const struct st_run *r) {
    const struct st_layer *l = &r->s->model->weights.layers[r->layer];
    struct st_chunk_buffers *b = r->buffers;
    size_t n = r->batch->n;
    ST_TRY(st_lone_linear(r, b->normed, n, &l->laurel_in, b->laurel_rank));
    ST_TRY(st_lone_linear(r, b->laurel_rank, n, &l->laurel_out, b->laurel));
    st_pass_norm(r, &l->laurel_norm, b->laurel, n, b->laurel);
    r->s->kernels.elementwise->add(b->normed, n * r->s->model->config.hidden, b->laurel);
    return STINT_OK;
}

void st_laurel_add(const struct st_run *r) {
    size_t n = r->batch->n * r->s->model->config.hidden;
    r->s->kernels.elementwise->add(r->buffers->laurel, n, r->buffers->x);
    r->s->kernels.elementwise->scale(half_variance, r->buffers->x, n, r->buffers->x);
}

// The first state, times the layer's scale, is then what the gate of the layer's input meets.
static void correct_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct st_run *r = context;
    const struct st_config *c = &r->s->model->config;
    const struct st_stream_weight *w = &r->s->model->weights.layers[r->layer].streams;
    const struct st_elementwise *k = r->s->kernels.elementwise;
    const float *predicted = r->buffers->predicted + t * c->hidden;
    float *x = stream_of(r, 0, t), *gated = r->buffers->normed + t * c->hidden;
    k->axpy(-1.0f, predicted, c->hidden, x);
    for (uint32_t i = 1; i < c->n_streams; i++)
        k->axpy(mix(r, t, w->correct, i) + 1.0f, x, c->hidden, stream_of(r, i, t));
    k->scale(mix(r, t, w->correct, 0) + 1.0f, x, c->hidden, x);
    k->add(predicted, c->hidden, x);
    for (size_t d = 0; d < c->hidden; d++) gated[d] = w->scale ? x[d] * w->scale[d] : x[d];
}

stint_status st_streams_correct(const struct st_run *r) {
    ST_TRY(route(r));
    st_pool_run(r->group->pool, correct_token, (void *)(uintptr_t)r, r->batch->n);
    return STINT_OK;
}

void st_streams_add(const struct st_run *r, const float *y) {
    size_t n = r->batch->n * r->s->model->config.hidden;
    for (uint32_t i = 1; i < r->s->model->config.n_streams; i++)
        r->s->kernels.elementwise->add(y, n, stream_of(r, i, 0));
}

stint_status st_streams_end(const struct st_run *r) {
    const struct st_config *c = &r->s->model->config;
    const struct st_elementwise *k = r->s->kernels.elementwise;
    struct st_chunk_buffers *b = r->buffers;
    size_t n = r->batch->n * c->hidden;
    memcpy(b->predicted, b->x, n * sizeof(float));
    for (uint32_t i = 1; i < c->n_streams; i++) {
        ST_TRY(st_lone_linear(r, stream_of(r, i, 0), r->batch->n,
                              &r->s->model->weights.stream_out[i - 1], b->projected));
        for (size_t t = 0; t < r->batch->n; t++) {
            const float *y = b->projected + t * c->hidden;
            k->axpy(factor_of(stream_of(r, 0, t), y, c->hidden), y, c->hidden,
                    b->predicted + t * c->hidden);
        }
    }
    k->scale(1.0f / (float)c->n_streams, b->predicted, n, b->x);
    return STINT_OK;
}

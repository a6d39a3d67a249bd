// SPDX-License-Identifier: Apache-2.0
// The feed-forward block of a step for models whose neurons are stored one by one. A predictor
// names the active neurons (PowerInfer-2, section 4.1), which are computed from the neuron cache.
// The rows of a step are computed in groups of ST_NEURON_TOKENS, each with the neurons that are
// predicted for any of its rows; for more rows at once, nearly all neurons would be predicted.
#include "session/weights/bounded.h"

#include "base/size.h"
#include "session/pass.h"

#include <string.h>

// The longest that opening waits for neurons that steps will probably need.
static const double fill_seconds = 2.0;

static size_t widest_rank(const struct stint_model *m) {
    size_t widest = 1;
    for (uint32_t i = 0; i < m->config.n_layers; i++)
        if (m->neurons.layers[i].predicted)
            widest = st_max(widest, m->neurons.layers[i].predict_in.rows[0]);
    return widest;
}

static size_t quantized_bytes(const struct stint_model *m) {
    return st_max(st_quantized_bytes(ST_NEURON_TOKENS, m->config.hidden, false),
                  st_quantized_bytes(ST_NEURON_TOKENS, widest_rank(m), false));
}

void st_prediction_lay_out(const struct stint_model *m, struct st_prediction *n,
                           struct st_arena *arena) {
    size_t tokens = ST_NEURON_TOKENS;
    n->graphs = st_arena_take(arena, m->config.n_layers, sizeof *n->graphs);
    n->weights = st_arena_take(arena, m->config.n_layers, sizeof *n->weights);
    n->input = ST_TAKE(arena, float, tokens * m->config.hidden);
    n->quantized = ST_TAKE(arena, uint8_t, quantized_bytes(m));
    n->ranks = ST_TAKE(arena, float, tokens *widest_rank(m));
    n->scores = ST_TAKE(arena, float, tokens * m->config.ffn);
    n->guess = ST_TAKE(arena, float, tokens * m->config.hidden);
}

static stint_status compile(struct st_bounded *r, uint32_t layer, int part) {
    struct st_prediction *n = &r->prediction;
    struct st_device_weights **weights = &n->weights[layer][part];
    struct st_device_subgraph subgraph = {.linear_ops = {r->neurons.predictors[layer][part]},
                                          .n_linear_ops = 1};
    ST_TRY(st_device_import_weights(n->device, &subgraph.linear_ops[0].weight, false, weights));
    return st_device_compile(n->device, &subgraph, weights, ST_NEURON_TOKENS,
                             &n->graphs[layer][part]);
}

stint_status st_bounded_attach(struct st_bounded *r, struct st_device *device,
                               const struct st_hybrid_options *second) {
    struct st_prediction *n = &r->prediction;
    struct st_arena *slices = &r->slices.arena;
    if (slices->used) ST_TRY(st_mirror_open(device, slices->base, slices->used, &r->streamed));
    if (r->made.panels)
        ST_TRY(st_mirror_open(device, r->arena.base, r->arena.used, &r->made.mirror));
    ST_TRY(st_hybrid_open(r, second));
    if (r->sparse && !(r->leave_out & (STINT_LEAVE_CACHE | STINT_LEAVE_PIPELINE)))
        st_neurons_fill(&r->neurons, fill_seconds);
    st_bounded_count_opening(r);
    if (!r->sparse || r->leave_out & STINT_LEAVE_PREDICTOR) return STINT_OK;
    n->device = r->hybrid.threads.worker ? r->hybrid.threads.device : device;
    ST_TRY(st_mirror_open(n->device, r->arena.base, r->arena.used, &n->mirror));
    for (uint32_t i = 0; i < r->neurons.model->config.n_layers; i++)
        for (int j = 0; j < 2 && r->neurons.model->neurons.layers[i].predicted; j++)
            ST_TRY(compile(r, i, j));
    return STINT_OK;
}

void st_bounded_detach(struct st_bounded *r) {
    struct st_prediction *n = &r->prediction;
    for (uint32_t i = 0; n->device && i < r->neurons.model->config.n_layers; i++)
        for (int j = 0; j < 2; j++) {
            st_device_free_graph(n->graphs[i][j]);
            st_device_free_weights(n->weights[i][j]);
        }
    n->device = NULL;
    st_mirror_close(&n->mirror);
    st_hybrid_close(r);
    st_mirror_close(&r->made.mirror);
    st_mirror_close(&r->streamed);
}

// Runs a linear of a predictor: y [n_tokens, rows] from x [n_tokens, n_in].
static stint_status run_linear(const struct st_prediction *n, struct st_graph *graph,
                               const struct st_linear_op *linear_op, const float *x,
                               size_t n_tokens, float *y) {
    size_t k = linear_op->weight.n_in;
    struct st_slice quantized = st_mirror_slice(&n->mirror, n->quantized, 0);
    struct st_quantize_args input = {.x = st_mirror_slice(&n->mirror, x, k * sizeof *x),
                                     .quantized = quantized,
                                     .n_rows = n_tokens,
                                     .n = k,
                                     .scale = linear_op->weight.input_scale};
    struct st_graph_args args = {
        .n_rows = n_tokens,
        .in = quantized,
        .out = {st_mirror_slice(&n->mirror, y, linear_op->rows[0] * sizeof *y)}};
    struct st_job *job;
    ST_TRY(st_device_quantize(n->device, &input, NULL, 0, &job));
    ST_TRY(st_job_join(job, NULL));
    ST_TRY(st_device_submit(graph, &args, NULL, 0, &job));
    return st_job_join(job, NULL);
}

// Scores the neurons of a layer by its predictor, from the block's input x. scores NULL: all
// neurons are active.
static stint_status name_neurons(const struct st_run *run, uint32_t layer, const float *x,
                                 size_t n_tokens, const float **scores) {
    struct st_prediction *n = &run->s->bounded->prediction;
    size_t bytes = n_tokens * run->s->model->config.hidden * sizeof *x;
    const struct st_linear_op *linear_ops = run->s->bounded->neurons.predictors[layer];
    struct st_graph *const *graphs = n->graphs[layer];
    *scores = NULL;
    if (!graphs[0]) return STINT_OK;
    memcpy(n->input, x, bytes);
    ST_TRY(run_linear(n, graphs[0], &linear_ops[0], n->input, n_tokens, n->ranks));
    ST_TRY(run_linear(n, graphs[1], &linear_ops[1], n->ranks, n_tokens, n->scores));
    *scores = n->scores;
    return STINT_OK;
}

// What the host computes: the clusters from this one on.
static stint_status run_host(const struct st_run *run, const float *scores, uint32_t first) {
    struct st_bounded *r = run->s->bounded;
    const struct st_clusters part = {first, r->neurons.plan.n_clusters};
    return st_neurons_run(&r->neurons, run->layer, part, scores, &r->block,
                          st_hybrid_pool(&r->hybrid, run->group->pool),
                          !(r->leave_out & STINT_LEAVE_PIPELINE));
}

stint_status st_bounded_block(const struct st_run *run, const float *x, size_t n_tokens) {
    struct st_neurons *n = &run->s->bounded->neurons;
    uint32_t device;
    n->possible += n->model->neurons.layout.n;
    const float *scores = NULL;
    ST_TRY(st_hybrid_begin(run, x, n_tokens, &device));
    stint_status status = name_neurons(run, run->layer, x, n_tokens, &scores);
    if (status == STINT_OK) status = st_hybrid_go_on(run, scores, n_tokens, &device);
    if (status == STINT_OK) status = run_host(run, scores, device);
    return st_hybrid_end(run, status, scores, device);
}

// Tokens [first, first + n).
static stint_status expect_group(const struct st_run *run, size_t first, size_t n) {
    const struct stint_session *s = run->s;
    struct st_bounded *r = s->bounded;
    const float *scores, *x = run->buffers->x + first * s->model->config.hidden;
    x = st_bounded_guess(run, x, n, r->prediction.guess);
    ST_TRY(name_neurons(run, run->layer, x, n, &scores));
    if (scores) st_neurons_expect(&r->neurons, run->layer, scores, n);
    return STINT_OK;
}

const float *st_bounded_guess(const struct st_run *run, const float *x, size_t n, float *to) {
    const struct st_layer *l = &run->s->model->weights.layers[run->layer];
    enum st_block block = run->s->model->config.block;
    if (!st_block_norms_input(block)) return x;
    st_pass_norm(run, block == ST_BLOCK_PARALLEL ? &l->attn_norm : &l->ffn_norm, x, n, to);
    return to;
}

stint_status st_bounded_expect_neurons(const struct st_run *run) {
    const struct st_bounded *r = run->s->bounded;
    size_t n = run->batch->n;
    if (!st_trial_next(&r->expecting) || !st_neurons_may_miss(&r->neurons)) return STINT_OK;
    for (size_t t = 0; t < n; t += ST_NEURON_TOKENS)
        ST_TRY(expect_group(run, t, st_min(ST_NEURON_TOKENS, n - t)));
    return STINT_OK;
}

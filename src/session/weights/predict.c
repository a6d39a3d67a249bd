// SPDX-License-Identifier: Apache-2.0
// The feed-forward block of a step where a model's neurons are stored one by one: a predictor names
// the active ones (PowerInfer-2, section 4.1), they are computed from the neuron cache. A step's
// rows are computed in groups of ST_NEURON_TOKENS, each with the neurons that are named for any of
// its rows: of more rows together nearly all neurons would be.
#include "session/weights/bounded.h"

#include "base/size.h"
#include "session/pass.h"

#include <string.h>

static size_t widest_rank(const struct stint_model *m) {
    size_t widest = 1;
    for (uint32_t i = 0; i < m->config.n_layers; i++)
        if (m->neurons.layers[i].predicted)
            widest = st_max(widest, m->neurons.layers[i].predict_in.rows[0]);
    return widest;
}

void st_naming_lay_out(const struct stint_model *m, struct st_naming *n, struct st_arena *arena) {
    size_t tokens = ST_NEURON_TOKENS, rank = widest_rank(m);
    n->in_row = st_device_row(m->config.hidden);
    n->middle_row = st_device_row(rank);
    n->graphs = st_arena_take(arena, m->config.n_layers, sizeof *n->graphs);
    n->in = ST_TAKE(arena, uint8_t, tokens * n->in_row);
    n->middle = ST_TAKE(arena, uint8_t, tokens * n->middle_row);
    n->ranks = ST_TAKE(arena, float, tokens *rank);
    n->scores = ST_TAKE(arena, float, tokens * m->config.ffn);
    n->guess = ST_TAKE(arena, float, tokens * m->config.hidden);
}

stint_status st_naming_open(struct st_resident *r, const struct st_npu *npu) {
    struct st_naming *n = &r->naming;
    if (!r->sparse || r->leave_out & STINT_LEAVE_PREDICTOR) return STINT_OK;
    n->type = npu->type;
    for (uint32_t i = 0; i < r->neurons.model->config.n_layers; i++)
        for (int j = 0; j < 2 && r->neurons.model->neurons.layers[i].predicted; j++) {
            struct st_graph_desc desc = {.stages = {r->neurons.predictors[i][j]}, .n_stages = 1};
            ST_TRY(npu->type->compile(npu->device, &desc, ST_NEURON_TOKENS, &n->graphs[i][j]));
        }
    return STINT_OK;
}

void st_naming_close(struct st_resident *r) {
    const struct st_naming *n = &r->naming;
    if (!n->graphs || !n->type) return;
    for (uint32_t i = 0; i < r->neurons.model->config.n_layers; i++)
        for (int j = 0; j < 2; j++)
            if (n->graphs[i][j]) n->type->free_graph(n->graphs[i][j]);
}

static stint_status run_linear(const struct st_run *run, struct st_graph *graph,
                               const struct st_stage *stage, const float *x, size_t n_tokens,
                               uint8_t *q, size_t q_row, float *y) {
    const struct st_npu *npu = run->group->npu;
    size_t k = stage->weight.n_in;
    struct st_graph_io io = {
        .n_tokens = n_tokens, .in = q, .in_row = q_row, .out = {y}, .out_row = {stage->rows[0]}};
    for (size_t t = 0; t < n_tokens; t++)
        run->s->kernels.elementwise->quantize(x + t * k, k, stage->weight.input_scale,
                                              npu->type->zero(npu->device), q + t * q_row);
    ST_TRY(npu->type->submit(graph, &io));
    return npu->type->wait(npu->device);
}

// By the predictor of a layer, of its block's input x. scores NULL: every neuron.
static stint_status name_neurons(const struct st_run *run, uint32_t layer, const float *x,
                                 size_t n_tokens, const float **scores) {
    const struct st_naming *n = &run->s->resident->naming;
    const struct st_stage *stages = run->s->resident->neurons.predictors[layer];
    struct st_graph *const *graphs = n->graphs[layer];
    *scores = NULL;
    if (!graphs[0]) return STINT_OK;
    ST_TRY(run_linear(run, graphs[0], &stages[0], x, n_tokens, n->in, n->in_row, n->ranks));
    ST_TRY(run_linear(run, graphs[1], &stages[1], n->ranks, n_tokens, n->middle, n->middle_row,
                      n->scores));
    *scores = n->scores;
    return STINT_OK;
}

// Tokens [first, first + n).
static stint_status run_group(const struct st_run *run, const struct st_graph_io *io, size_t first,
                              size_t n) {
    const struct stint_session *s = run->s;
    struct st_resident *r = s->resident;
    struct st_sparse *block = &r->block;
    const struct st_npu *npu = run->group->npu;
    bool post = s->model->config.block == ST_BLOCK_POST;
    const float *scores, *x = post ? run->buffers->x : run->buffers->normed;
    ST_TRY(name_neurons(run, run->layer, x + first * s->model->config.hidden, n, &scores));
    block->first_token = first;
    block->add_row = io->add ? io->add_row + first : NULL;
    st_sparse_begin(block, io->in + ST_TWO_TERMS * first * io->in_row, io->in_row,
                    npu->type->zero(npu->device), n);
    bool ahead = !(r->leave_out & STINT_LEAVE_PIPELINE);
    ST_TRY(st_neurons_run(&r->neurons, run->layer, scores, block, run->group->pool, ahead));
    st_sparse_end(block, run->group->pool, io->out[0] + first * io->out_row[0], io->out_row[0]);
    return STINT_OK;
}

stint_status st_resident_block(const struct st_run *run, const struct st_graph_io *io) {
    struct st_resident *r = run->s->resident;
    const struct st_ffn_int8 *w = run->s->model->int8.layers[run->layer].ffn;
    struct st_sparse *block = &r->block;
    block->up = &w->up;
    block->down = &w->down;
    block->add = io->add;
    block->spill = io->spill;
    block->clipped = io->clipped;
    for (size_t t = 0; t < io->n_tokens; t += ST_NEURON_TOKENS)
        ST_TRY(run_group(run, io, t, st_min(ST_NEURON_TOKENS, io->n_tokens - t)));
    st_neurons_end(&r->neurons);
    return STINT_OK;
}

// Tokens [first, first + n).
static stint_status expect_group(const struct st_run *run, uint32_t layer, size_t first, size_t n) {
    const struct stint_session *s = run->s;
    struct st_resident *r = s->resident;
    const struct st_config *c = &s->model->config;
    const struct st_layer *l = &s->model->weights.layers[layer];
    const float *scores, *x = run->buffers->x + first * c->hidden;
    if (c->block != ST_BLOCK_POST) {
        bool parallel = c->block == ST_BLOCK_PARALLEL;
        st_pass_norm(run, parallel ? &l->attn_norm : &l->ffn_norm, x, n, r->naming.guess);
        x = r->naming.guess;
    }
    ST_TRY(name_neurons(run, layer, x, n, &scores));
    if (scores) st_neurons_expect(&r->neurons, layer, scores, n);
    return STINT_OK;
}

// Between two blocks lies an attention, which changes the hidden state little: what the next
// predictor says of the state before it is mostly right, and the disk is idle meanwhile.
stint_status st_resident_look_ahead(const struct st_run *run) {
    const struct st_resident *r = run->s->resident;
    size_t n = run->batch->n;
    uint32_t next = run->layer + 1;
    if (r->leave_out & STINT_LEAVE_PIPELINE || !r->sparse || run->phase != ST_PHASE_DECODE ||
        next == run->s->model->config.n_layers || !st_neurons_may_miss(&r->neurons))
        return STINT_OK;
    for (size_t t = 0; t < n; t += ST_NEURON_TOKENS)
        ST_TRY(expect_group(run, next, t, st_min(ST_NEURON_TOKENS, n - t)));
    return STINT_OK;
}

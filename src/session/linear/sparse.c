// SPDX-License-Identifier: Apache-2.0
// A step's feed-forward block from the neurons that are predicted to be active (PowerInfer-2,
// section 4.1), on the host: inputs in two terms (device/two_term.h), neurons from their cache.
#include "base/clock.h"
#include "base/size.h"
#include "device/two_term.h"
#include "session/linear/int8.h"
#include "session/weights/bounded.h"

enum { ZERO = 128 }; // the byte that stands for 0

// For the input of sparse blocks.
void st_two_term_lay_out(struct stint_session *s, struct st_arena *arena) {
    const struct st_config *c = &s->model->config;
    struct st_two_term *t = &s->two_term;
    if (!s->model->neurons.layers) return;
    t->in_row = st_int8_padded_k(c->hidden) + ST_DEVICE_PAD;
    t->in = ST_TAKE(arena, uint8_t, ST_TWO_TERMS * st_session_step_rows(s) * t->in_row);
}

struct quantizing {
    const struct st_run *run;
    const struct st_operands *operands;
    const struct st_int8_weight *weight;
    struct st_outliers *list; // or NULL
};

static void quantize_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct quantizing *j = context;
    struct stint_session *s = j->run->s;
    const struct st_int8_weight *w = j->weight;
    uint8_t *q = s->two_term.in + ST_TWO_TERMS * t * s->two_term.in_row;
    const float *x = j->operands->x + t * w->n_in;
    size_t clipped = s->kernels.elementwise->quantize_two(x, w->n_in, w->input_scale, ZERO, q,
                                                          q + s->two_term.in_row);
    if (!clipped) return;
    atomic_fetch_add_explicit(&s->npus.clipped, clipped, memory_order_relaxed);
    if (j->list) st_outliers_collect(j->list, x, w->n_in, w->input_scale, (uint32_t)t, 0, ZERO, q);
}

static stint_status prepare(const struct st_run *r, const struct st_operands *o) {
    const struct st_linear_op *up = st_run_linear_op(r, ST_INT8_UP, 0);
    struct st_shadow *shadow = &r->buffers->shadow;
    struct quantizing j = {r, o, &up->weight, st_shadow_list(shadow, up, shadow->in)};
    if (j.list) st_outliers_reset(j.list, shadow->capacity);
    st_pool_run(r->group->pool, quantize_token, &j, o->n);
    return STINT_OK;
}

// Tokens [first, first + n).
static stint_status run_group(const struct st_run *r, const struct st_operands *o, size_t first,
                              size_t n) {
    const struct st_two_term *t = &r->s->two_term;
    struct st_sparse *block = &r->s->bounded->block;
    block->first_token = first;
    block->add_row = block->add ? r->buffers->shadow.add_row + first : NULL;
    st_sparse_begin(block, t->in + ST_TWO_TERMS * first * t->in_row, t->in_row, ZERO, n);
    ST_TRY(st_bounded_block(r, o->x + first * r->s->model->config.hidden, n));
    st_sparse_end(block, r->group->pool, o->y[0] + first * o->y_row[0], o->y_row[0]);
    return STINT_OK;
}

static stint_status run(const struct st_run *r, const struct st_operands *o) {
    const struct st_ffn_int8 *w = r->s->model->int8.layers[r->layer].ffn;
    struct st_shadow *shadow = &r->buffers->shadow;
    struct st_sparse *block = &r->s->bounded->block;
    block->up = &w->up;
    block->down = &w->down;
    block->add = w->up.weight.shadowed && shadow->pending ? shadow->add : NULL;
    block->outliers = st_shadow_list(shadow, &w->down, shadow->middle);
    block->clipped = &r->s->npus.clipped;
    if (block->outliers) st_outliers_reset(block->outliers, shadow->capacity);
    for (size_t t = 0; t < o->n; t += ST_NEURON_TOKENS)
        ST_TRY(run_group(r, o, t, st_min(ST_NEURON_TOKENS, o->n - t)));
    st_neurons_end(&r->s->bounded->neurons);
    return STINT_OK;
}

const struct st_op st_op_sparse_ffn = {.name = "sparse",
                                       .prepare = prepare,
                                       .before = st_int8_before_ffn,
                                       .run = run,
                                       .finish = st_int8_finish_ffn};

// SPDX-License-Identifier: Apache-2.0
// The feed-forward block: gated or plain, one or a routed mixture (Mixtral, Jiang et al. 2024,
// section 2.1).
#include "session/linear/op.h"

#include "base/size.h"
#include "session/weights/source.h"

#include <math.h>
#include <string.h>

struct activation {
    const struct st_run *run;
    size_t n; // elements per token
    bool gated;
    const float *norm;   // of the result; or NULL
    const float *cutoff; // standard deviations over the mean that a gate must reach; or NULL
};

// What remains of a gate's outputs: the excess over the cutoff of this token.
static void cut(float deviations, size_t n, float *gate) {
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < n; i++) sum += (double)gate[i];
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) squares += ((double)gate[i] - mean) * ((double)gate[i] - mean);
    float from = (float)(mean + sqrt(squares / (double)n) * (double)deviations);
    for (size_t i = 0; i < n; i++) gate[i] = fmaxf(gate[i] - from, 0.0f);
}

static void activate_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct activation *a = context;
    const struct st_elementwise *k = a->run->s->kernels.elementwise;
    enum st_act act = a->run->s->model->config.act;
    float *up = a->run->buffers->up + t * a->n;
    if (a->cutoff) cut(*a->cutoff, a->n, a->run->buffers->gate + t * a->n);
    if (a->gated)
        k->act_gated(act, a->run->buffers->gate + t * a->n, up, a->n, up);
    else
        k->act(act, up, a->n, up);
    if (a->norm) k->rmsnorm(up, a->norm, a->run->s->model->config.norm_epsilon, a->n, up);
}

// up and gate, the activation and perhaps a norm, down; x -> y.
static stint_status run_block(const struct st_run *r, const struct st_operands *o,
                              const struct st_op *linear) {
    struct st_chunk_buffers *b = r->buffers;
    size_t n_ffn = st_config_ffn(&r->s->model->config, r->layer, o->expert);
    const struct st_ffn_weight *block = &r->s->model->weights.layers[r->layer].ffn[o->expert];
    const struct st_config *c = &r->s->model->config;
    struct activation activation = {r, n_ffn, (c->flags & ST_ARCH_GATED) != 0, block->norm,
                                    c->cut[r->layer] ? &c->cutoff[r->layer] : NULL};
    bool int8 = linear == &st_op_int8; // whose parts are gate and up, not up and gate
    struct st_operands up = *o, down = *o;
    up.y[int8 ? 1 : 0] = b->up;
    up.y[int8 ? 0 : 1] = b->gate;
    up.y_row[0] = up.y_row[1] = n_ffn;
    struct st_gating gating = {.act = c->act, .next = &block->down};
    if (activation.gated && !activation.norm && !activation.cutoff) up.gating = &gating;
    ST_TRY(linear->run(r, &up));
    if (linear->finish) ST_TRY(linear->finish(r, &up));
    if (!gating.packed) st_pool_run(r->group->pool, activate_token, &activation, o->n);
    down.role = ST_INT8_DOWN;
    down.x = b->up;
    down.packed = gating.packed;
    return st_op_all(linear, r, &down);
}

static stint_status run_float(const struct st_run *r, const struct st_operands *o) {
    return run_block(r, o, &st_op_float);
}

static stint_status run_blocks(const struct st_run *r, const struct st_operands *o) {
    return run_block(r, o, &st_op_blocks);
}

static stint_status run_nested(const struct st_run *r, const struct st_operands *o) {
    return run_block(r, o, &st_op_nested);
}

static stint_status prepare_int8(const struct st_run *r, const struct st_operands *o) {
    return st_op_int8.prepare(r, o);
}

static stint_status run_int8(const struct st_run *r, const struct st_operands *o) {
    return run_block(r, o, &st_op_int8);
}

const struct st_op st_op_cut_ffn = {.name = "int8", .prepare = prepare_int8, .run = run_int8};
const struct st_op st_op_float_ffn = {.name = "float", .run = run_float};
const struct st_op st_op_blocks_ffn = {.name = "blocks", .run = run_blocks};
const struct st_op st_op_nested_ffn = {.name = "nested", .run = run_nested};

// ---- Mixtures

// Those of the batch, to the source of their weights.
static void expect_experts(const struct st_run *r, size_t n) {
    for (uint32_t e = 0; e < r->s->model->config.n_experts; e++)
        if (st_route_has(r, n, e)) r->s->source->expect(r, e);
}

static void norm_rows(const struct st_run *r, const float *weight, size_t n, float *x, size_t row) {
    const struct st_config *c = &r->s->model->config;
    for (size_t t = 0; t < n; t++)
        r->s->kernels.elementwise->rmsnorm(x + t * row, weight, c->norm_epsilon, c->hidden,
                                           x + t * row);
}

// The tokens of one expert, through it and into the sum.
static stint_status run_expert(const struct st_run *r, const struct st_operands *o,
                               uint32_t expert) {
    const struct st_config *c = &r->s->model->config;
    struct st_chunk_buffers *b = r->buffers;
    size_t hidden = c->hidden, n = 0;
    for (size_t t = 0; t < o->n; t++) {
        if (b->route[t * c->n_experts + expert] == 0.0f) continue;
        memcpy(b->expert_in + n * hidden, o->x + t * hidden, hidden * sizeof(float));
        b->expert_tokens[n++] = (int32_t)t;
    }
    if (n == 0) return STINT_OK;
    const float *factors = r->s->model->weights.layers[r->layer].mixture.experts;
    if (factors) st_scale_rows(r, factors, b->expert_in, n, b->expert_in);
    struct st_operands inside = {.role = ST_INT8_UP,
                                 .expert = expert,
                                 .x = b->expert_in,
                                 .n = n,
                                 .y = {b->expert_out},
                                 .y_row = {hidden}};
    ST_TRY(st_op_all(st_op_of(r, ST_UNIT_EXPERT), r, &inside));
    for (size_t i = 0; i < n; i++) {
        size_t t = (size_t)b->expert_tokens[i];
        r->s->kernels.elementwise->axpy(b->route[t * c->n_experts + expert],
                                        b->expert_out + i * hidden, hidden,
                                        o->y[0] + t * o->y_row[0]);
    }
    return STINT_OK;
}

// The block that all tokens pass through, with its share of a token where it has a gate.
static stint_status run_shared(const struct st_run *r, const struct st_operands *o) {
    const struct st_config *c = &r->s->model->config;
    const struct st_linear_weight *gate = &r->s->model->weights.layers[r->layer].shared_gate;
    struct st_chunk_buffers *b = r->buffers;
    struct st_operands inside = {.role = ST_INT8_UP,
                                 .expert = c->n_experts,
                                 .x = o->x,
                                 .n = o->n,
                                 .y = {b->expert_out},
                                 .y_row = {c->hidden}};
    const struct st_mixture_norms *m = &r->s->model->weights.layers[r->layer].mixture;
    if (m->shared) st_scale_rows(r, m->shared, o->x, o->n, b->expert_in);
    if (m->shared) inside.x = b->expert_in;
    if (gate->data) ST_TRY(st_lone_linear(r, o->x, o->n, gate, b->shared_gate));
    ST_TRY(st_op_all(st_op_of(r, ST_UNIT_EXPERT), r, &inside));
    if (m->shared) norm_rows(r, m->shared_out, o->n, b->expert_out, c->hidden);
    for (size_t t = 0; t < o->n; t++) {
        float share = gate->data ? 1.0f / (1.0f + expf(-b->shared_gate[t])) : 1.0f;
        r->s->kernels.elementwise->axpy(share, b->expert_out + t * c->hidden, c->hidden,
                                        o->y[0] + t * o->y_row[0]);
    }
    return STINT_OK;
}

// Expert by expert, over the tokens that were routed to it; each token adds its experts in
// ascending order, and then the shared block.
static stint_status run_mixture(const struct st_run *r, const struct st_operands *o) {
    const struct st_config *c = &r->s->model->config;
    const struct st_mixture_norms *m = &r->s->model->weights.layers[r->layer].mixture;
    ST_TRY(st_route(r, o->x, o->n));
    if (r->s->source->expect) expect_experts(r, o->n);
    memset(o->y[0], 0, o->n * c->hidden * sizeof(float));
    for (uint32_t e = 0; e < c->n_experts; e++) ST_TRY(run_expert(r, o, e));
    if (m->experts) norm_rows(r, m->experts_out, o->n, o->y[0], o->y_row[0]);
    return c->shared_ffn ? run_shared(r, o) : STINT_OK;
}

const struct st_op st_op_mixture = {.name = "mixture", .run = run_mixture};

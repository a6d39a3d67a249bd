// SPDX-License-Identifier: Apache-2.0
// Two-term INT8: steps of a model whose neurons are stored one by one. What a predictor leaves out
// changes a hidden state very little; with inputs in 8 bits that little moves roundings further on,
// and each of those moves others (docs/NUMERICS.md). So every input is two numbers here
// (device/fine.h), and the activation between two products is computed in float.
#include "session/linear/int8.h"

#include "base/clock.h"
#include "base/size.h"
#include "device/fine.h"
#include "session/weights/bounded.h"

#include <string.h>

enum { PER_LAYER = 4 }; // graphs: qkv, o, up, down

static size_t max_rows(const struct stint_session *s) {
    return ST_TWO_TERMS * st_session_step_rows(s);
}

// The product of a stage alone. Its bias is added once, not to both parts.
static struct st_stage product_of(const struct st_stage *stage) {
    struct st_stage s = *stage;
    s.weight.bias = NULL;
    if (s.epilogue == ST_EPILOGUE_FLOAT) return s;
    s.epilogue = ST_EPILOGUE_FLOAT;
    s.rows[0] = s.weight.n_panels * ST_INT8_PANEL;
    return s;
}

static size_t n_graphs(const struct st_config *c) {
    return (size_t)PER_LAYER * c->n_layers + 1;
}

static size_t packed_rows(const struct st_stage *stage) {
    return (size_t)stage->weight.n_panels * ST_INT8_PANEL;
}

// ---- Memory

void st_two_term_lay_out(struct stint_session *s, struct st_arena *arena) {
    const struct st_config *c = &s->model->config;
    const struct st_layer_int8 *l = s->model->int8.layers;
    struct st_two_term *f = &s->two_term;
    if (!s->model->neurons.layers) return;
    size_t widest = st_max(packed_rows(&l->qkv), packed_rows(&l->ffn->up));
    f->widest_out = st_max(widest, st_max(c->vocab, c->hidden));
    f->in_row = st_device_row(
        st_max(st_max(c->hidden, c->embed), st_max(c->ffn, (size_t)c->n_heads * c->head_dim)));
    f->in = ST_TAKE(arena, uint8_t, max_rows(s) * f->in_row);
    f->out = ST_TAKE(arena, float, max_rows(s) * f->widest_out);
    f->up = ST_TAKE(arena, float, st_session_step_rows(s) * packed_rows(&l->ffn->up));
    f->graphs = ST_TAKE(arena, struct st_graph *, n_graphs(c));
}

static stint_status compile(const struct stint_session *s, const struct st_stage *stage,
                            struct st_graph **graph) {
    struct st_graph_desc desc = {.stages = {product_of(stage)}, .n_stages = 1};
    return s->npu.type->compile(s->npu.device, &desc, max_rows(s), graph);
}

stint_status st_two_term_open(struct stint_session *s) {
    const struct st_weights_int8 *w = &s->model->int8;
    struct st_graph **graph = s->two_term.graphs;
    if (!graph) return STINT_OK;
    for (uint32_t i = 0; i < s->model->config.n_layers; i++) {
        const struct st_layer_int8 *l = &w->layers[i];
        const struct st_stage *stages[PER_LAYER] = {&l->qkv, &l->o, &l->ffn->up, &l->ffn->down};
        for (int j = 0; j < PER_LAYER; j++) ST_TRY(compile(s, stages[j], graph++));
    }
    return compile(s, &w->head, graph);
}

void st_two_term_close(struct stint_session *s) {
    for (size_t i = 0; s->two_term.graphs && i < n_graphs(&s->model->config); i++)
        if (s->two_term.graphs[i]) s->npu.type->free_graph(s->two_term.graphs[i]);
    s->two_term.graphs = NULL;
}

// ---- A linear

struct linear {
    const struct st_run *run;
    const struct st_stage *stage;
    const struct st_operands *operands;
    struct st_spill *spill; // or NULL
    const float *add;       // to the outputs of `up`; as in struct st_graph_io
    const int32_t *add_row;
};

static struct linear linear_of(const struct st_run *r, const struct st_operands *o) {
    return (struct linear){.run = r, .stage = st_run_stage(r, o->role, o->expert), .operands = o};
}

// Inputs are as wide as the linear, but for that of `down`, which lies in the packed rows of `up`.
static size_t input_row(const struct linear *l) {
    const struct st_stage *up = st_run_stage(l->run, ST_INT8_UP, 0);
    return l->operands->role == ST_INT8_DOWN ? packed_rows(up) : l->stage->weight.n_in;
}

static void quantize_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct linear *l = context;
    struct stint_session *s = l->run->s;
    const struct st_two_term *f = &s->two_term;
    const struct st_int8_weight *w = &l->stage->weight;
    uint8_t zero = s->npu.type->zero(s->npu.device), *q = f->in + ST_TWO_TERMS * t * f->in_row;
    const float *x = l->operands->x + t * input_row(l);
    size_t clipped = st_fine_quantize(s->kernels.elementwise, x, w->n_in, w->input_scale, zero, q,
                                      q + f->in_row);
    if (clipped) atomic_fetch_add_explicit(&s->npu.clipped, clipped, memory_order_relaxed);
    if (clipped && l->spill)
        st_spill_row(l->spill, x, w->n_in, w->input_scale, (uint32_t)t, 0, zero, q);
}

static stint_status quantize(const struct st_run *r, const struct st_operands *o,
                             struct st_spill *spill) {
    struct linear l = linear_of(r, o);
    l.spill = st_shadow_spill(&r->buffers->shadow, l.stage, spill);
    st_pool_run(r->group->pool, quantize_token, &l, o->n);
    return STINT_OK;
}

static stint_status prepare(const struct st_run *r, const struct st_operands *o) {
    return quantize(r, o, &r->buffers->shadow.in);
}

static void join_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct linear *l = context;
    const struct st_operands *o = l->operands;
    const struct st_two_term *f = &l->run->s->two_term;
    const float *product = f->out + ST_TWO_TERMS * t * f->widest_out;
    for (size_t i = 0, row = 0; i < l->stage->n_parts; i++) {
        size_t rows = o->role == ST_INT8_UP ? packed_rows(l->stage) : l->stage->rows[i];
        const float *bias = l->stage->weight.bias ? l->stage->weight.bias + row : NULL;
        float *y = o->y[i] + t * o->y_row[i];
        st_fine_join(product + row, product + f->widest_out + row, bias, rows, y);
        if (l->add && l->add_row[t] >= 0)
            l->run->s->kernels.elementwise->add(l->add + (size_t)l->add_row[t] * rows, rows, y);
        row += st_round_up(rows, ST_INT8_PANEL);
    }
}

static struct st_graph *graph_of(const struct linear *l) {
    enum st_int8_role role = l->operands->role;
    size_t layer = role == ST_INT8_HEAD ? l->run->s->model->config.n_layers : l->run->layer;
    return l->run->s->two_term.graphs[PER_LAYER * layer + (role == ST_INT8_HEAD ? 0 : role)];
}

// What has been quantized, times the weights.
static stint_status multiply(struct linear *l) {
    const struct st_operands *o = l->operands;
    const struct st_two_term *f = &l->run->s->two_term;
    struct st_graph_io io = {.n_tokens = ST_TWO_TERMS * o->n, .in = f->in, .in_row = f->in_row};
    for (size_t i = 0, row = 0; i < l->stage->n_parts; i++) {
        io.out[i] = f->out + row;
        io.out_row[i] = f->widest_out;
        row += st_round_up(l->stage->rows[i], ST_INT8_PANEL);
    }
    struct st_linear_id id = {o->role, l->run->layer, o->expert};
    ST_TRY(st_int8_run_graph(l->run, id, 1, graph_of(l), &io));
    st_pool_run(l->run->group->pool, join_token, l, o->n);
    return STINT_OK;
}

// Columns are read while the device computes.
static stint_status run_with(const struct st_run *r, const struct st_operands *o,
                             struct st_spill *spill) {
    struct linear l = linear_of(r, o);
    struct st_shadow *shadow = &r->buffers->shadow;
    uint64_t begun = st_now_ns();
    st_shadow_begin(shadow, l.stage, spill, o->n);
    if (l.stage->weight.shadowed) st_shadow_count(&shadow->counts.ns, &begun);
    ST_TRY(multiply(&l));
    if (l.stage->weight.shadowed) st_shadow_count(&shadow->counts.device_ns, &begun);
    return STINT_OK;
}

static stint_status run(const struct st_run *r, const struct st_operands *o) {
    return run_with(r, o, &r->buffers->shadow.in);
}

// The head may meet more rows than a step has.
static stint_status run_head(const struct st_run *r, const struct st_operands *o) {
    size_t most = st_session_step_rows(r->s);
    for (size_t t = 0; t < o->n; t += most) {
        struct st_operands some = *o;
        some.x += t * r->s->model->config.embed;
        some.y[0] += t * o->y_row[0];
        some.n = st_min(most, o->n - t);
        ST_TRY(st_op_all(&st_op_two_term, r, &some));
    }
    return STINT_OK;
}

const struct st_op st_op_two_term = {
    .name = "two-term int8", .prepare = prepare, .run = run, .finish = st_int8_finish};
const struct st_op st_op_two_term_head = {.name = "two-term int8", .run = run_head};

// ---- Feed-forward blocks

// Of packed rows, to their front.
static void activate_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct linear *l = context;
    const struct st_elementwise *e = l->run->s->kernels.elementwise;
    float *y = l->operands->y[0] + t * l->operands->y_row[0];
    size_t n = l->stage->rows[0];
    if (l->stage->epilogue == ST_EPILOGUE_ACT) {
        e->act(l->stage->act, y, n, y);
        return;
    }
    for (size_t at = 0; at < n; at += ST_GATED_GROUP) {
        const float *gate = y + at / ST_GATED_GROUP * ST_DEVICE_GROUP;
        e->act_gated(l->stage->act, gate, gate + ST_GATED_GROUP, st_min(ST_GATED_GROUP, n - at),
                     y + at);
    }
}

static void set_add(const struct st_run *r, const struct st_stage *up, const float **add,
                    const int32_t **add_row) {
    const struct st_shadow *shadow = &r->buffers->shadow;
    *add = up->weight.shadowed && shadow->pending ? shadow->add : NULL;
    *add_row = shadow->add_row;
}

// As the graph of `up` and `down`, with an input of `down` in two terms.
static stint_status run_ffn(const struct st_run *r, const struct st_operands *o) {
    struct st_operands inner = *o, down = *o;
    inner.y[0] = r->s->two_term.up;
    struct linear up = linear_of(r, &inner);
    inner.y_row[0] = packed_rows(up.stage);
    set_add(r, up.stage, &up.add, &up.add_row);
    ST_TRY(multiply(&up));
    st_pool_run(r->group->pool, activate_token, &up, o->n);
    down.role = ST_INT8_DOWN;
    down.x = inner.y[0];
    struct st_spill *spill = &r->buffers->shadow.middle;
    ST_TRY(quantize(r, &down, spill));
    return run_with(r, &down, spill);
}

static stint_status finish_ffn(const struct st_run *r, const struct st_operands *o) {
    struct st_operands down = *o;
    down.role = ST_INT8_DOWN;
    return st_int8_finish(r, &down);
}

static stint_status run_sparse_ffn(const struct st_run *r, const struct st_operands *o) {
    const struct st_stage *up = st_run_stage(r, ST_INT8_UP, 0);
    struct st_shadow *shadow = &r->buffers->shadow;
    struct st_graph_io io = {
        .n_tokens = o->n,
        .in = r->s->two_term.in,
        .in_row = r->s->two_term.in_row,
        .out = {o->y[0]},
        .out_row = {o->y_row[0]},
        .clipped = &r->s->npu.clipped,
        .spill = st_shadow_spill(shadow, st_run_stage(r, ST_INT8_DOWN, 0), &shadow->middle)};
    set_add(r, up, &io.add, &io.add_row);
    return st_resident_block(r, &io);
}

const struct st_op st_op_two_term_ffn = {.name = "two-term int8",
                                         .prepare = prepare,
                                         .before = st_int8_before_ffn,
                                         .run = run_ffn,
                                         .finish = finish_ffn};
const struct st_op st_op_sparse_ffn = {.name = "sparse",
                                       .prepare = prepare,
                                       .before = st_int8_before_ffn,
                                       .run = run_sparse_ffn,
                                       .finish = st_int8_finish_ffn};

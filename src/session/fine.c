// SPDX-License-Identifier: Apache-2.0
// Steps of a model whose neurons are stored one by one. What a predictor leaves out changes a
// hidden state very little; with inputs in 8 bits that little moves roundings further on, and each
// of those moves others (docs/NUMERICS.md). So every input is two numbers here (device/fine.h), and
// the activation between two products is computed in float.
#include "session/session.h"

#include "base/clock.h"
#include "base/size.h"
#include "device/fine.h"

#include <string.h>

enum {
    PER_LAYER = 4, // graphs: qkv, o, up, down
    MOST_TOKENS = ST_DECODE_TOKENS,
    MOST_ROWS = ST_FINE_PARTS * MOST_TOKENS,
};

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

void st_fine_lay_out(struct stint_session *s, struct st_arena *arena) {
    const struct st_config *c = &s->model->config;
    const struct st_layer_int8 *l = s->model->int8.layers;
    struct st_fine *f = &s->fine;
    if (!s->model->neurons.layers) return;
    size_t widest = st_max(packed_rows(&l->qkv), packed_rows(&l->ffn->up));
    f->widest_out = st_max(widest, st_max(c->vocab, c->hidden));
    f->in_row = st_device_row(
        st_max(st_max(c->hidden, c->embed), st_max(c->ffn, (size_t)c->n_heads * c->head_dim)));
    f->in = ST_TAKE(arena, uint8_t, MOST_ROWS * f->in_row);
    f->out = ST_TAKE(arena, float, MOST_ROWS * f->widest_out);
    f->up = ST_TAKE(arena, float, MOST_TOKENS *packed_rows(&l->ffn->up));
    f->graphs = ST_TAKE(arena, struct st_graph *, n_graphs(c));
}

static stint_status compile(const struct stint_session *s, const struct st_stage *stage,
                            struct st_graph **graph) {
    struct st_graph_desc desc = {.stages = {product_of(stage)}, .n_stages = 1};
    return s->npu.type->compile(s->npu.device, &desc, MOST_ROWS, graph);
}

stint_status st_fine_open(struct stint_session *s) {
    const struct st_weights_int8 *w = &s->model->int8;
    struct st_graph **graph = s->fine.graphs;
    if (!graph) return STINT_OK;
    for (uint32_t i = 0; i < s->model->config.n_layers; i++) {
        const struct st_layer_int8 *l = &w->layers[i];
        const struct st_stage *stages[PER_LAYER] = {&l->qkv, &l->o, &l->ffn->up, &l->ffn->down};
        for (int j = 0; j < PER_LAYER; j++) ST_TRY(compile(s, stages[j], graph++));
    }
    return compile(s, &w->head, graph);
}

void st_fine_close(struct stint_session *s) {
    for (size_t i = 0; s->fine.graphs && i < n_graphs(&s->model->config); i++)
        if (s->fine.graphs[i]) s->npu.type->free_graph(s->fine.graphs[i]);
    s->fine.graphs = NULL;
}

// ---- A linear

struct linear {
    const struct st_run *run;
    const struct st_stage *stage;
    enum st_int8_role role;
    const float *x; // [n, n_in], rows x_row floats apart
    size_t n, x_row;
    struct st_spill *spill; // or NULL
    float *y[ST_STAGE_PARTS];
    size_t y_row[ST_STAGE_PARTS];
    const float *add; // to the outputs of `up`; as in struct st_graph_io
    const int32_t *add_row;
};

static void quantize_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct linear *l = context;
    struct stint_session *s = l->run->s;
    const struct st_fine *f = &s->fine;
    const struct st_int8_weight *w = &l->stage->weight;
    uint8_t zero = s->npu.type->zero(s->npu.device), *q = f->in + ST_FINE_PARTS * t * f->in_row;
    const float *x = l->x + t * l->x_row;
    size_t clipped = st_fine_quantize(s->kernels.elementwise, x, w->n_in, w->input_scale, zero, q,
                                      q + f->in_row);
    if (clipped) atomic_fetch_add_explicit(&s->npu.clipped, clipped, memory_order_relaxed);
    if (clipped && l->spill)
        st_spill_row(l->spill, x, w->n_in, w->input_scale, (uint32_t)t, 0, zero, q);
}

static void quantize(struct linear *l, struct st_spill *spill) {
    l->spill = st_shadow_spill(&l->run->lane->shadow, l->stage, spill);
    st_pool_run(l->run->crew->pool, quantize_token, l, l->n);
}

static void join_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct linear *l = context;
    const struct st_fine *f = &l->run->s->fine;
    const float *product = f->out + ST_FINE_PARTS * t * f->widest_out;
    for (size_t i = 0, row = 0; i < l->stage->n_parts; i++) {
        size_t rows = l->role == ST_INT8_UP ? packed_rows(l->stage) : l->stage->rows[i];
        const float *bias = l->stage->weight.bias ? l->stage->weight.bias + row : NULL;
        float *y = l->y[i] + t * l->y_row[i];
        st_fine_join(product + row, product + f->widest_out + row, bias, rows, y);
        if (l->add && l->add_row[t] >= 0)
            l->run->s->kernels.elementwise->add(l->add + (size_t)l->add_row[t] * rows, rows, y);
        row += st_round_up(rows, ST_INT8_PANEL);
    }
}

static struct st_graph *graph_of(const struct linear *l) {
    size_t layer = l->role == ST_INT8_HEAD ? l->run->s->model->config.n_layers : l->run->layer;
    size_t role = l->role == ST_INT8_HEAD ? 0 : l->role;
    return l->run->s->fine.graphs[PER_LAYER * layer + role];
}

// What has been quantized, times the weights.
static stint_status multiply(struct linear *l) {
    struct stint_session *s = l->run->s;
    const struct st_fine *f = &s->fine;
    struct st_graph_io io = {.n_tokens = ST_FINE_PARTS * l->n, .in = f->in, .in_row = f->in_row};
    for (size_t i = 0, row = 0; i < l->stage->n_parts; i++) {
        io.out[i] = f->out + row;
        io.out_row[i] = f->widest_out;
        row += st_round_up(l->stage->rows[i], ST_INT8_PANEL);
    }
    if (s->resident) {
        ST_TRY(st_resident_product(l->run, l->role, graph_of(l), &io));
    } else {
        ST_TRY(s->npu.type->submit(graph_of(l), &io));
        ST_TRY(s->npu.type->wait(s->npu.device));
    }
    st_pool_run(l->run->crew->pool, join_token, l, l->n);
    return STINT_OK;
}

// Columns are read while the device computes.
static stint_status run_linear(struct linear *l, struct st_spill *spill) {
    struct st_shadow *shadow = &l->run->lane->shadow;
    struct st_shadow_counts *counts = &shadow->counts;
    quantize(l, spill);
    if (!l->stage->weight.shadowed) return multiply(l);
    uint64_t begun = st_now_ns();
    st_shadow_begin(shadow, l->stage, spill, l->n);
    st_shadow_count(&counts->ns, &begun);
    ST_TRY(multiply(l));
    st_shadow_count(&counts->device_ns, &begun);
    ST_TRY(st_shadow_finish(shadow, l->run->crew->pool, l->y, l->y_row));
    st_shadow_count(&counts->ns, &begun);
    return STINT_OK;
}

// ---- The subgraphs

static const struct st_layer_int8 *layer_of(const struct st_run *r) {
    return &r->s->model->int8.layers[r->layer];
}

static stint_status qkv(const struct st_run *r) {
    const struct st_config *c = &r->s->model->config;
    struct st_lane *lane = r->lane;
    size_t n_q = (size_t)c->n_heads * c->head_dim, n_kv = (size_t)c->n_kv_heads * c->head_dim;
    struct linear l = {.run = r,
                       .stage = &layer_of(r)->qkv,
                       .role = ST_INT8_QKV,
                       .x = lane->normed,
                       .n = r->batch->n,
                       .x_row = c->hidden,
                       .y = {lane->q, lane->k, lane->v},
                       .y_row = {n_q, n_kv, n_kv}};
    ST_TRY(run_linear(&l, &lane->shadow.in));
    st_session_append(r);
    return STINT_OK;
}

// x -> projected
static struct linear to_projected(const struct st_run *r, enum st_int8_role role,
                                  const struct st_stage *stage, const float *x, size_t x_row) {
    return (struct linear){.run = r,
                           .stage = stage,
                           .role = role,
                           .x = x,
                           .n = r->batch->n,
                           .x_row = x_row,
                           .y = {r->lane->projected},
                           .y_row = {r->s->model->config.hidden}};
}

static stint_status o(const struct st_run *r) {
    const struct st_stage *stage = &layer_of(r)->o;
    struct linear l = to_projected(r, ST_INT8_O, stage, r->lane->attended, stage->weight.n_in);
    ST_TRY(run_linear(&l, &r->lane->shadow.in));
    st_session_residual(r, &st_run_layer(r)->post_attn_norm, &st_run_layer(r)->attn_norm);
    return STINT_OK;
}

// Of packed rows, to their front.
static void activate_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct linear *l = context;
    const struct st_elementwise *e = l->run->s->kernels.elementwise;
    float *y = l->y[0] + t * l->y_row[0];
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

// As the graph of `up` and `down`, with an input of `down` that is as fine.
static stint_status dense_ffn(struct linear *up) {
    const struct st_run *r = up->run;
    ST_TRY(multiply(up));
    st_pool_run(r->crew->pool, activate_token, up, up->n);
    struct linear down =
        to_projected(r, ST_INT8_DOWN, &layer_of(r)->ffn->down, up->y[0], up->y_row[0]);
    return run_linear(&down, &r->lane->shadow.middle);
}

static stint_status sparse_ffn(struct linear *up) {
    const struct st_run *r = up->run;
    struct st_shadow *shadow = &r->lane->shadow;
    struct linear down = to_projected(r, ST_INT8_DOWN, &layer_of(r)->ffn->down, NULL, 0);
    struct st_graph_io io = {.n_tokens = up->n,
                             .in = r->s->fine.in,
                             .in_row = r->s->fine.in_row,
                             .out = {down.y[0]},
                             .out_row = {down.y_row[0]},
                             .add = up->add,
                             .add_row = up->add_row,
                             .clipped = &r->s->npu.clipped,
                             .spill = st_shadow_spill(shadow, down.stage, &shadow->middle)};
    ST_TRY(st_resident_block(r, &io));
    if (!down.stage->weight.shadowed) return STINT_OK;
    uint64_t begun = st_now_ns();
    st_shadow_begin(shadow, down.stage, &shadow->middle, down.n);
    ST_TRY(st_shadow_finish(shadow, r->crew->pool, down.y, down.y_row));
    st_shadow_count(&shadow->counts.ns, &begun);
    return STINT_OK;
}

static stint_status ffn(const struct st_run *r) {
    struct st_shadow *shadow = &r->lane->shadow;
    const struct st_stage *stage = &layer_of(r)->ffn->up;
    struct linear up = {.run = r,
                        .stage = stage,
                        .role = ST_INT8_UP,
                        .x = r->lane->normed,
                        .n = r->batch->n,
                        .x_row = stage->weight.n_in,
                        .y = {r->s->fine.up},
                        .y_row = {packed_rows(stage)}};
    quantize(&up, &shadow->in);
    if (stage->weight.shadowed) {
        uint64_t begun = st_now_ns();
        st_shadow_begin(shadow, stage, &shadow->in, up.n);
        ST_TRY(st_shadow_finish_before(shadow, r->crew->pool));
        st_shadow_count(&shadow->counts.ns, &begun);
        up.add = shadow->pending ? shadow->add : NULL;
        up.add_row = shadow->add_row;
    }
    bool sparse = r->s->resident && st_resident_is_sparse(r, up.n);
    ST_TRY(sparse ? sparse_ffn(&up) : dense_ffn(&up));
    st_session_residual(r, &st_run_layer(r)->post_ffn_norm, &st_run_layer(r)->ffn_norm);
    return r->s->resident ? st_resident_look_ahead(r) : STINT_OK;
}

st_subgraph_fn *const st_fine_subgraphs[ST_N_SUBGRAPHS] = {
    [ST_SUBGRAPH_ATTN_NORM] = st_session_attn_norm, [ST_SUBGRAPH_QKV] = qkv,
    [ST_SUBGRAPH_ATTENTION] = st_session_attention, [ST_SUBGRAPH_O] = o,
    [ST_SUBGRAPH_FFN_NORM] = st_session_ffn_norm,   [ST_SUBGRAPH_FFN] = ffn,
};

stint_status st_fine_head(const struct st_run *r, const float *x, size_t n, float *logits) {
    const struct st_config *c = &r->s->model->config;
    for (size_t t = 0; t < n; t += MOST_TOKENS) {
        struct linear l = {.run = r,
                           .stage = &r->s->model->int8.head,
                           .role = ST_INT8_HEAD,
                           .x = x + t * c->embed,
                           .n = st_min(MOST_TOKENS, n - t),
                           .x_row = c->embed,
                           .y = {logits + t * c->vocab},
                           .y_row = {c->vocab}};
        ST_TRY(run_linear(&l, &r->lane->shadow.in));
    }
    return STINT_OK;
}

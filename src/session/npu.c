// SPDX-License-Identifier: Apache-2.0
// A batch of tokens through the layers with INT8 linears on the NPU's role (llm.npu, section 3):
// norms, rotation and attention stay in float on the CPU, everything between them is a static
// subgraph that was compiled once and serves every chunk.
#include "session/session.h"

#include "base/clock.h"
#include "base/size.h"

#include <math.h>
#include <string.h>

enum {
    FIRST_FFN = 2, // a layer's graphs: qkv, o, then its feed-forward blocks
    TUNE_RUNS = 3,
};

static size_t graphs_per_layer(const struct st_config *c) {
    return FIRST_FFN + st_max(1, c->n_experts);
}

static struct st_graph *graph_of(const struct st_run *r, size_t i) {
    return r->crew->npu->graphs[r->layer * graphs_per_layer(&r->s->model->config) + i];
}

void st_npu_lay_out(struct stint_session *s, struct st_arena *arena) {
    const struct st_config *c = &s->model->config;
    struct st_npu *npu = &s->npu;
    npu->in_row = st_device_row(st_max(c->hidden, c->embed));
    npu->attended_row = st_device_row((size_t)c->n_heads * c->head_dim);
    npu->middle_row = st_device_row(c->ffn);
    npu->n_graphs = graphs_per_layer(c) * c->n_layers + 1;
    npu->graphs = ST_TAKE(arena, struct st_graph *, npu->n_graphs);
}

void st_npu_lay_out_lane(const struct stint_session *s, struct st_lane *lane,
                         struct st_arena *arena) {
    lane->in8 = ST_TAKE(arena, uint8_t, s->chunk_len * s->npu.in_row);
    lane->attended8 = ST_TAKE(arena, uint8_t, s->chunk_len * s->npu.attended_row);
    lane->middle8 = ST_TAKE(arena, uint8_t, s->chunk_len * s->npu.middle_row);
}

static stint_status compile_one(const struct stint_session *s, const struct st_npu *npu,
                                const struct st_stage *first, const struct st_stage *second,
                                struct st_graph **graph) {
    struct st_graph_desc desc = {.stages = {*first}, .n_stages = second ? 2 : 1};
    if (second) desc.stages[1] = *second;
    return npu->type->compile(npu->device, &desc, s->chunk_len, graph);
}

static stint_status compile_all(const struct stint_session *s, const struct st_npu *npu) {
    const struct st_config *c = &s->model->config;
    const struct st_weights_int8 *w = &s->model->int8;
    struct st_graph **graph = npu->graphs;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        ST_TRY(compile_one(s, npu, &w->layers[i].qkv, NULL, graph++));
        ST_TRY(compile_one(s, npu, &w->layers[i].o, NULL, graph++));
        for (uint32_t e = 0; e < st_max(1, c->n_experts); e++)
            ST_TRY(
                compile_one(s, npu, &w->layers[i].ffn[e].up, &w->layers[i].ffn[e].down, graph++));
    }
    return compile_one(s, npu, &w->head, NULL, graph);
}

void st_npu_close(struct st_npu *npu) {
    if (!npu->device) return;
    for (size_t i = 0; i < npu->n_graphs; i++)
        if (npu->graphs[i]) npu->type->free_graph(npu->graphs[i]);
    npu->type->close(npu->device);
    npu->device = NULL;
}

struct quantize_job {
    struct stint_session *s;
    const struct st_norm_weight *norm; // NULL: x as it is
    const float *x;
    float *normed;
    size_t n;
    float scale;
    uint8_t *q;
    size_t q_row;
    struct st_spill *spill; // or NULL
};

static void quantize_row(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct quantize_job *j = context;
    struct stint_session *s = j->s;
    const float *row = j->x + t * j->n;
    if (j->norm) {
        st_session_norm_row(s, j->norm, row, j->normed + t * j->n);
        row = j->normed + t * j->n;
    }
    uint8_t zero = s->npu.type->zero(s->npu.device), *q = j->q + t * j->q_row;
    size_t clipped = s->kernels.elementwise->quantize(row, j->n, j->scale, zero, q);
    if (clipped) atomic_fetch_add_explicit(&s->npu.clipped, clipped, memory_order_relaxed);
    if (clipped && j->spill) st_spill_row(j->spill, row, j->n, j->scale, (uint32_t)t, 0, zero, q);
}

// q [n_tokens] = x [n_tokens, n], the input of `stage`, over its scale
static void quantize(const struct st_run *r, const struct st_stage *stage, const float *x,
                     size_t n_tokens, uint8_t *q, size_t q_row) {
    struct st_shadow *shadow = &r->lane->shadow;
    struct quantize_job job = {.s = r->s,
                               .x = x,
                               .n = stage->weight.n_in,
                               .scale = stage->weight.input_scale,
                               .q = q,
                               .q_row = q_row,
                               .spill = st_shadow_spill(shadow, stage, &shadow->in)};
    st_pool_run(r->crew->pool, quantize_row, &job, n_tokens);
}

// Norm and quantization of a row while it lies in the first-level cache.
static void norm_quantize(const struct st_run *r, const struct st_norm_weight *norm,
                          const struct st_stage *stage) {
    struct stint_session *s = r->s;
    struct st_lane *lane = r->lane;
    bool post = s->model->config.block == ST_BLOCK_POST;
    struct quantize_job job = {.s = s,
                               .norm = post ? NULL : norm,
                               .x = lane->x,
                               .normed = lane->normed,
                               .n = s->model->config.hidden,
                               .scale = stage->weight.input_scale,
                               .q = lane->in8,
                               .q_row = s->npu.in_row,
                               .spill = st_shadow_spill(&lane->shadow, stage, &lane->shadow.in)};
    st_pool_run(r->crew->pool, quantize_row, &job, r->batch->n);
}

// The graph that begins with the linear of this role.
static stint_status run_graph(const struct st_run *r, enum st_int8_role role, uint32_t expert,
                              struct st_graph *graph, struct st_graph_io *io) {
    const struct st_npu *npu = r->crew->npu;
    if (r->s->resident) return st_resident_graph(r, role, expert, graph, io);
    ST_TRY(npu->type->submit(graph, io));
    return npu->type->wait(npu->device);
}

// The same of shadow execution, which the timeline shows too.
static void count_shadow(const struct st_run *r, uint64_t *begun) {
    st_session_record(r, ST_SUBGRAPH_SHADOW, *begun);
    st_shadow_count(&r->lane->shadow.counts.ns, begun);
}

static bool is_apart(const struct st_run *r, const struct st_stage *stage) {
    return r->shadows_apart && stage->weight.shadowed;
}

// A graph of one product, and its shadow: columns are read while the device computes. Where shadows
// are apart it stays pending.
static stint_status run_product(const struct st_run *r, enum st_int8_role role,
                                const struct st_stage *stage, struct st_graph *graph,
                                struct st_graph_io *io) {
    struct st_shadow *shadow = &r->lane->shadow;
    struct st_shadow_counts *counts = &shadow->counts;
    if (!stage->weight.shadowed) return run_graph(r, role, 0, graph, io);
    uint64_t begun = st_now_ns();
    st_shadow_begin(shadow, stage, &shadow->in, io->n_tokens);
    st_shadow_count(&counts->ns, &begun);
    ST_TRY(run_graph(r, role, 0, graph, io));
    st_shadow_count(&counts->device_ns, &begun);
    if (is_apart(r, stage)) return STINT_OK;
    ST_TRY(st_shadow_finish(shadow, r->crew->pool, io->out, io->out_row));
    count_shadow(r, &begun);
    return STINT_OK;
}

static const struct st_layer_int8 *layer_of(const struct st_run *r) {
    return &r->s->model->int8.layers[r->layer];
}

static stint_status attn_norm(const struct st_run *r) {
    norm_quantize(r, &st_run_layer(r)->attn_norm, &layer_of(r)->qkv);
    return STINT_OK;
}

// Where q, k and v, or the sum of a block, go.
static void set_outputs(const struct st_run *r, enum st_int8_role role, struct st_graph_io *io) {
    const struct st_config *c = &r->s->model->config;
    size_t n_q = (size_t)c->n_heads * c->head_dim, n_kv = (size_t)c->n_kv_heads * c->head_dim;
    io->out[0] = r->lane->projected;
    io->out_row[0] = c->hidden;
    if (role != ST_INT8_QKV) return;
    float *out[] = {r->lane->q, r->lane->k, r->lane->v};
    size_t out_row[] = {n_q, n_kv, n_kv};
    memcpy(io->out, out, sizeof out);
    memcpy(io->out_row, out_row, sizeof out_row);
}

static void after_o(const struct st_run *r) {
    st_session_residual(r, &st_run_layer(r)->post_attn_norm, &st_run_layer(r)->attn_norm);
}

static void after_ffn(const struct st_run *r) {
    st_session_residual(r, &st_run_layer(r)->post_ffn_norm, &st_run_layer(r)->ffn_norm);
}

static stint_status qkv(const struct st_run *r) {
    const struct st_stage *stage = &layer_of(r)->qkv;
    struct st_graph_io io = {
        .n_tokens = r->batch->n, .in = r->lane->in8, .in_row = r->s->npu.in_row};
    set_outputs(r, ST_INT8_QKV, &io);
    ST_TRY(run_product(r, ST_INT8_QKV, stage, graph_of(r, 0), &io));
    if (!is_apart(r, stage)) st_session_append(r);
    return STINT_OK;
}

static stint_status o(const struct st_run *r) {
    const struct st_stage *stage = &layer_of(r)->o;
    size_t in_row = r->s->npu.attended_row;
    quantize(r, stage, r->lane->attended, r->batch->n, r->lane->attended8, in_row);
    struct st_graph_io io = {.n_tokens = r->batch->n, .in = r->lane->attended8, .in_row = in_row};
    set_outputs(r, ST_INT8_O, &io);
    ST_TRY(run_product(r, ST_INT8_O, stage, graph_of(r, 1), &io));
    if (!is_apart(r, stage)) after_o(r);
    return STINT_OK;
}

static stint_status ffn_norm(const struct st_run *r) {
    struct stint_session *s = r->s;
    const struct st_config *c = &s->model->config;
    const struct st_stage *up = &layer_of(r)->ffn->up;
    if (c->n_experts) // each expert has a scale of its own
        st_session_block_norm(r, &st_run_layer(r)->ffn_norm);
    else if (c->block == ST_BLOCK_PARALLEL)
        quantize(r, up, r->lane->normed, r->batch->n, r->lane->in8, s->npu.in_row);
    else
        norm_quantize(r, &st_run_layer(r)->ffn_norm, up);
    return STINT_OK;
}

static stint_status shadow_up(const struct st_run *r, uint32_t expert, size_t n, uint64_t *begun) {
    struct st_shadow *shadow = &r->lane->shadow;
    st_shadow_begin(shadow, &layer_of(r)->ffn[expert].up, &shadow->in, n);
    ST_TRY(st_shadow_finish_before(shadow, r->crew->pool));
    count_shadow(r, begun);
    return STINT_OK;
}

static stint_status shadow_down(const struct st_run *r, uint32_t expert, size_t n, float *y,
                                uint64_t *begun) {
    struct st_shadow *shadow = &r->lane->shadow;
    size_t row = r->s->model->config.hidden;
    st_shadow_begin(shadow, &layer_of(r)->ffn[expert].down, &shadow->middle, n);
    ST_TRY(st_shadow_finish(shadow, r->crew->pool, &y, &row));
    count_shadow(r, begun);
    return STINT_OK;
}

// in8 -> y [n, hidden]
static stint_status run_ffn(const struct st_run *r, uint32_t expert, size_t n, float *y) {
    struct stint_session *s = r->s;
    const struct st_ffn_int8 *w = &layer_of(r)->ffn[expert];
    struct st_shadow *shadow = &r->lane->shadow;
    struct st_graph_io io = {.n_tokens = n,
                             .in = r->lane->in8,
                             .in_row = s->npu.in_row,
                             .middle = r->lane->middle8,
                             .middle_row = s->npu.middle_row,
                             .out = {y},
                             .out_row = {s->model->config.hidden},
                             .clipped = &s->npu.clipped,
                             .spill = st_shadow_spill(shadow, &w->down, &shadow->middle)};
    struct st_graph *graph = graph_of(r, FIRST_FFN + expert);
    if (!w->up.weight.shadowed && !w->down.weight.shadowed)
        return run_graph(r, ST_INT8_UP, expert, graph, &io);
    uint64_t begun = st_now_ns();
    if (w->up.weight.shadowed && !r->shadows_apart) ST_TRY(shadow_up(r, expert, n, &begun));
    if (w->up.weight.shadowed && shadow->pending) {
        io.add = shadow->add;
        io.add_row = shadow->add_row;
    }
    ST_TRY(run_graph(r, ST_INT8_UP, expert, graph, &io));
    st_shadow_count(&shadow->counts.device_ns, &begun);
    if (!w->down.weight.shadowed || r->shadows_apart) return STINT_OK;
    return shadow_down(r, expert, n, y, &begun);
}

static stint_status run_expert(const struct st_run *r, uint32_t expert, const float *x, size_t n,
                               float *y) {
    struct st_run inside = *r; // of a mixture shadows are never apart
    inside.shadows_apart = false;
    quantize(r, &layer_of(r)->ffn[expert].up, x, n, r->lane->in8, r->s->npu.in_row);
    return run_ffn(&inside, expert, n, y);
}

static stint_status ffn(const struct st_run *r) {
    struct st_lane *lane = r->lane;
    size_t n = r->batch->n;
    if (r->s->model->config.n_experts)
        ST_TRY(st_session_mixture(r, lane->normed, n, lane->projected, run_expert));
    else
        ST_TRY(run_ffn(r, 0, n, lane->projected));
    if (r->s->model->config.n_experts || !is_apart(r, &layer_of(r)->ffn->down)) after_ffn(r);
    return STINT_OK;
}

void st_npu_shadows(const struct stint_session *s, uint32_t layer,
                    uint8_t shadows[ST_N_SUBGRAPHS]) {
    memset(shadows, 0, ST_N_SUBGRAPHS);
    if (!s->model->int8.layers) return;
    const struct st_layer_int8 *l = &s->model->int8.layers[layer];
    if (l->qkv.weight.shadowed) shadows[ST_SUBGRAPH_QKV] = ST_SHADOW_AFTER;
    if (l->o.weight.shadowed) shadows[ST_SUBGRAPH_O] = ST_SHADOW_AFTER;
    if (s->model->config.n_experts) return;
    if (l->ffn->up.weight.shadowed) shadows[ST_SUBGRAPH_FFN] |= ST_SHADOW_BEFORE;
    if (l->ffn->down.weight.shadowed) shadows[ST_SUBGRAPH_FFN] |= ST_SHADOW_AFTER;
}

stint_status st_npu_shadow(const struct st_run *r, enum st_int8_role role) {
    struct st_graph_io io;
    uint64_t begun = st_now_ns();
    if (role == ST_INT8_UP) return shadow_up(r, 0, r->batch->n, &begun);
    if (role == ST_INT8_DOWN) {
        ST_TRY(shadow_down(r, 0, r->batch->n, r->lane->projected, &begun));
        after_ffn(r);
        return STINT_OK;
    }
    set_outputs(r, role, &io);
    ST_TRY(st_shadow_finish(&r->lane->shadow, r->crew->pool, io.out, io.out_row));
    count_shadow(r, &begun);
    if (role == ST_INT8_QKV)
        st_session_append(r);
    else
        after_o(r);
    return STINT_OK;
}

st_subgraph_fn *const st_npu_subgraphs[ST_N_SUBGRAPHS] = {
    [ST_SUBGRAPH_ATTN_NORM] = attn_norm,
    [ST_SUBGRAPH_QKV] = qkv,
    [ST_SUBGRAPH_ATTENTION] = st_session_attention,
    [ST_SUBGRAPH_O] = o,
    [ST_SUBGRAPH_FFN_NORM] = ffn_norm,
    [ST_SUBGRAPH_FFN] = ffn,
};

stint_status st_npu_head(const struct st_run *r, const float *x, size_t n, float *logits) {
    struct stint_session *s = r->s;
    const struct st_config *c = &s->model->config;
    const struct st_stage *head = &s->model->int8.head;
    quantize(r, head, x, n, r->lane->in8, s->npu.in_row);
    struct st_graph_io io = {.n_tokens = n,
                             .in = r->lane->in8,
                             .in_row = s->npu.in_row,
                             .out = {logits},
                             .out_row = {c->vocab}};
    return run_product(r, ST_INT8_HEAD, head, r->crew->npu->graphs[s->npu.n_graphs - 1], &io);
}

// Seconds a token of the first layer's static subgraphs takes in a chunk of n, over what is in the
// buffers: the best of a few runs.
static stint_status time_chunk(struct stint_session *s, size_t n, double *seconds) {
    const struct st_config *c = &s->model->config;
    struct st_batch batch = {.n = n, .n_total = n};
    struct st_run run = st_session_run(s, ST_PHASE_PREFILL, ST_PRECISION_INT8, &batch);
    atomic_store_explicit(&run.lane->shadow.in.n, 0, memory_order_relaxed);
    *seconds = INFINITY;
    for (int i = 0; i < TUNE_RUNS; i++) {
        uint64_t begun = st_now_ns();
        ST_TRY(qkv(&run));
        ST_TRY(o(&run));
        ST_TRY(run_ffn(&run, 0, n, run.lane->projected));
        *seconds = fmin(*seconds, (double)(st_now_ns() - begun) * 1e-9 / (double)n);
    }
    memset(run.lane->x, 0, n * c->hidden * sizeof *run.lane->x);
    return STINT_OK;
}

// A longer chunk must earn its memory by being faster.
stint_status st_npu_tune(struct stint_session *s) {
    double best = INFINITY, seconds;
    size_t chosen = s->chunk_len;
    for (size_t n = ST_CHUNK_SHORTEST; n <= s->chunk_len; n *= 2) {
        ST_TRY(time_chunk(s, n, &seconds));
        if (seconds >= best * 0.98) continue;
        best = seconds;
        chosen = n;
    }
    s->chunk_len = chosen;
    s->lanes->shadow.counts = (struct st_shadow_counts){0};
    atomic_store_explicit(&s->npu.clipped, 0, memory_order_relaxed);
    return STINT_OK;
}

stint_status st_npu_open(struct stint_session *s, const char *device, const struct st_crew *crew) {
    struct st_npu *npu = crew->npu;
    ST_TRY(st_device_find(device, &npu->type));
    ST_TRY(npu->type->open(npu->type, crew->pool, &npu->device));
    uint64_t begun = st_now_ns();
    ST_TRY(compile_all(s, npu));
    npu->compile_seconds = (double)(st_now_ns() - begun) * 1e-9;
    return STINT_OK;
}

stint_status stint_session_graphs(const stint_session *session, stint_graph_info *info) {
    if (!session || !info || info->size == 0)
        return st_fail(STINT_E_ARG, "info->size must be set to sizeof(stint_graph_info)");
    const struct st_npu *npu = &session->npu;
    stint_graph_info out = {.size = info->size};
    if (npu->device) {
        out.n_graphs = (uint32_t)npu->n_graphs;
        out.compile_seconds = npu->compile_seconds;
        for (size_t i = 0; i < npu->n_graphs; i++)
            out.bytes += npu->type->graph_bytes(npu->graphs[i]);
        out.bytes += session->chunk_len * (npu->in_row + npu->attended_row + npu->middle_row);
    }
    memcpy(info, &out, st_min(info->size, sizeof out));
    return STINT_OK;
}

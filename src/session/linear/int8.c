// SPDX-License-Identifier: Apache-2.0
// INT8 linears on the device that acts as the NPU (llm.npu, section 3): norms, rotation and
// attention stay in float on the CPU, everything between them is a static subgraph that was
// compiled once and serves every chunk. Inputs are quantized with a static scale; what is beyond
// INT8 is multiplied in float beside the device's product (linear/shadow.h).
#include "session/linear/int8.h"

#include "base/clock.h"
#include "base/size.h"
#include "session/linear/op.h"
#include "session/weights/source.h"

// ---- Inputs

struct quantize_job {
    struct stint_session *s;
    const float *x;
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
    uint8_t zero = s->npu.type->zero(s->npu.device), *q = j->q + t * j->q_row;
    size_t clipped = s->kernels.elementwise->quantize(row, j->n, j->scale, zero, q);
    if (clipped) atomic_fetch_add_explicit(&s->npu.clipped, clipped, memory_order_relaxed);
    if (clipped && j->spill) st_spill_row(j->spill, row, j->n, j->scale, (uint32_t)t, 0, zero, q);
}

// Where the quantized input of a linear is.
static uint8_t *input_of(const struct st_run *r, enum st_int8_role role, size_t *row) {
    bool o = role == ST_INT8_O;
    *row = o ? r->s->npu.attended_row : r->s->npu.in_row;
    return o ? r->buffers->attended8 : r->buffers->in8;
}

static stint_status prepare(const struct st_run *r, const struct st_operands *o) {
    const struct st_stage *stage = st_run_stage(r, o->role, o->expert);
    struct st_shadow *shadow = &r->buffers->shadow;
    struct quantize_job job = {.s = r->s,
                               .x = o->x,
                               .n = stage->weight.n_in,
                               .scale = stage->weight.input_scale,
                               .spill = st_shadow_spill(shadow, stage, &shadow->in)};
    job.q = input_of(r, o->role, &job.q_row);
    st_pool_run(r->group->pool, quantize_row, &job, o->n);
    return STINT_OK;
}

// ---- Graphs

// One stage as far as its weights are there, then the next part.
static stint_status run_stage(const struct st_run *r, struct st_linear_id id, uint32_t index,
                              struct st_graph *graph, struct st_graph_io *io) {
    const struct st_npu *npu = r->group->npu;
    const struct st_weight_source *source = r->s->source;
    struct st_graph_part part = {.stage = index};
    size_t n_groups = st_stage_groups(st_run_stage(r, id.role, id.expert));
    io->part = &part;
    for (; part.group < n_groups; part.group += part.n_groups) {
        ST_TRY(source->acquire(r, id, &part));
        ST_TRY(npu->type->submit(graph, io));
        ST_TRY(npu->type->wait(npu->device));
        source->release(r, id, &part);
    }
    io->part = NULL;
    return STINT_OK;
}

stint_status st_int8_run_graph(const struct st_run *r, struct st_linear_id id, uint32_t n_stages,
                               struct st_graph *graph, struct st_graph_io *io) {
    const struct st_npu *npu = r->group->npu;
    if (!r->s->source->acquire) {
        ST_TRY(npu->type->submit(graph, io));
        return npu->type->wait(npu->device);
    }
    for (uint32_t i = 0; i < n_stages; i++, id.role++) ST_TRY(run_stage(r, id, i, graph, io));
    return STINT_OK;
}

static struct st_linear_id id_of(const struct st_run *r, const struct st_operands *o) {
    return (struct st_linear_id){o->role, r->layer, o->expert};
}

static void set_output(const struct st_operands *o, struct st_graph_io *io) {
    for (size_t i = 0; i < ST_STAGE_PARTS; i++) {
        io->out[i] = o->y[i];
        io->out_row[i] = o->y_row[i];
    }
}

// ---- A linear

void st_int8_count_shadow(const struct st_run *r, uint64_t *begun) {
    st_session_record(r, ST_SUBGRAPH_SHADOW, *begun);
    st_shadow_count(&r->buffers->shadow.counts.ns, begun);
}

// Columns are read while the device computes.
static stint_status run(const struct st_run *r, const struct st_operands *o) {
    const struct st_stage *stage = st_run_stage(r, o->role, o->expert);
    struct st_shadow *shadow = &r->buffers->shadow;
    struct st_graph_io io = {.n_tokens = o->n};
    uint64_t begun = st_now_ns();
    io.in = input_of(r, o->role, &io.in_row);
    set_output(o, &io);
    st_shadow_begin(shadow, stage, &shadow->in, o->n);
    if (stage->weight.shadowed) st_shadow_count(&shadow->counts.ns, &begun);
    ST_TRY(st_int8_run_graph(r, id_of(r, o), 1, st_npu_graph(r, o->role, o->expert), &io));
    if (stage->weight.shadowed) st_shadow_count(&shadow->counts.device_ns, &begun);
    return STINT_OK;
}

stint_status st_int8_finish(const struct st_run *r, const struct st_operands *o) {
    uint64_t begun = st_now_ns();
    if (!r->buffers->shadow.any || !st_run_stage(r, o->role, o->expert)->weight.shadowed)
        return STINT_OK;
    ST_TRY(st_shadow_finish(&r->buffers->shadow, r->group->pool, o->y, o->y_row));
    st_int8_count_shadow(r, &begun);
    return STINT_OK;
}

static uint8_t linear_apart(const struct stint_model *m, uint32_t layer, enum st_int8_role role) {
    return st_int8_stage(&m->int8, role, layer, 0)->weight.shadowed ? ST_SHADOW_AFTER : 0;
}

const struct st_op st_op_int8 = {.name = "int8",
                                 .prepare = prepare,
                                 .run = run,
                                 .finish = st_int8_finish,
                                 .apart = linear_apart};

// ---- A feed-forward block: both linears in one graph, with the activation between them

stint_status st_int8_before_ffn(const struct st_run *r, const struct st_operands *o) {
    const struct st_stage *stage = st_run_stage(r, ST_INT8_UP, o->expert);
    struct st_shadow *shadow = &r->buffers->shadow;
    uint64_t begun = st_now_ns();
    st_shadow_begin(shadow, stage, &shadow->in, o->n);
    if (!stage->weight.shadowed) return STINT_OK;
    ST_TRY(st_shadow_finish_before(shadow, r->group->pool));
    st_int8_count_shadow(r, &begun);
    return STINT_OK;
}

static stint_status run_ffn(const struct st_run *r, const struct st_operands *o) {
    struct stint_session *s = r->s;
    const struct st_stage *up = st_run_stage(r, ST_INT8_UP, o->expert);
    const struct st_stage *down = st_run_stage(r, ST_INT8_DOWN, o->expert);
    struct st_shadow *shadow = &r->buffers->shadow;
    struct st_graph_io io = {.n_tokens = o->n,
                             .middle = r->buffers->middle8,
                             .middle_row = s->npu.middle_row,
                             .clipped = &s->npu.clipped,
                             .spill = st_shadow_spill(shadow, down, &shadow->middle)};
    uint64_t begun = st_now_ns();
    io.in = input_of(r, ST_INT8_UP, &io.in_row);
    set_output(o, &io);
    if (up->weight.shadowed && shadow->pending) {
        io.add = shadow->add;
        io.add_row = shadow->add_row;
    }
    ST_TRY(st_int8_run_graph(r, id_of(r, o), 2, st_npu_graph(r, ST_INT8_UP, o->expert), &io));
    if (up->weight.shadowed || down->weight.shadowed)
        st_shadow_count(&shadow->counts.device_ns, &begun);
    return STINT_OK;
}

stint_status st_int8_finish_ffn(const struct st_run *r, const struct st_operands *o) {
    const struct st_stage *stage = st_run_stage(r, ST_INT8_DOWN, o->expert);
    struct st_shadow *shadow = &r->buffers->shadow;
    uint64_t begun = st_now_ns();
    if (!stage->weight.shadowed) return STINT_OK;
    st_shadow_begin(shadow, stage, &shadow->middle, o->n);
    ST_TRY(st_shadow_finish(shadow, r->group->pool, o->y, o->y_row));
    st_int8_count_shadow(r, &begun);
    return STINT_OK;
}

static uint8_t ffn_apart(const struct stint_model *m, uint32_t layer, enum st_int8_role role) {
    (void)role;
    const struct st_ffn_int8 *ffn = m->int8.layers[layer].ffn;
    return (uint8_t)((ffn->up.weight.shadowed ? ST_SHADOW_BEFORE : 0) |
                     (ffn->down.weight.shadowed ? ST_SHADOW_AFTER : 0));
}

const struct st_op st_op_int8_ffn = {.name = "int8",
                                     .prepare = prepare,
                                     .before = st_int8_before_ffn,
                                     .run = run_ffn,
                                     .finish = st_int8_finish_ffn,
                                     .apart = ffn_apart};

// SPDX-License-Identifier: Apache-2.0
// INT8 linears on the device that acts as the NPU (llm.npu, section 3): norms, rotation and
// attention stay in float on the CPU, everything between them is a static subgraph that was
// compiled once and serves every chunk. What is beyond INT8 is multiplied in float beside the
// device's product (linear/shadow.h). Where a device fails, the host computes the same unit again
// from its input, which is in memory as floats.
//
// Two-term INT8: in steps of a model whose neurons are stored one by one, what a predictor leaves
// out changes a hidden state very little; with inputs in 8 bits that little moves roundings further
// on, and each of those moves others (docs/NUMERICS.md). So every input is two numbers there.
#include "session/linear/int8.h"

#include "base/clock.h"
#include "base/size.h"
#include "session/linear/input_norm.h"
#include "session/linear/npu.h"
#include "session/pass.h"
#include "session/weights/source.h"

#include <math.h>
#include <string.h>

// ---- Memory

static size_t quantized_bytes(const struct stint_session *s, size_t n) {
    size_t bytes = st_quantized_bytes(s->chunk_len, n, s->model->int8.two_term);
    if (!s->model->neurons.layers) return bytes;
    return st_max(bytes, st_quantized_bytes(st_session_step_rows(s), n, true));
}

size_t st_int8_lay_out(const struct stint_session *s, struct st_chunk_buffers *b,
                       struct st_arena *arena) {
    const struct st_config *c = &s->model->config;
    size_t in = quantized_bytes(s, st_max(c->hidden, c->embed));
    size_t attended = quantized_bytes(s, st_config_widest_mixer(c).out);
    size_t middle = quantized_bytes(s, st_config_widest_ffn(c));
    b->in8 = ST_TAKE(arena, uint8_t, in);
    b->attended8 = ST_TAKE(arena, uint8_t, attended);
    b->middle8 = ST_TAKE(arena, uint8_t, middle);
    return in + attended + middle;
}

// ---- Jobs

static const struct st_npu *npu_of(const struct st_run *r, enum st_npu_kind kind) {
    return r->group->npu[kind];
}

static uint8_t *input_of(const struct st_run *r, enum st_int8_role role) {
    if (role == ST_INT8_DOWN) return r->buffers->middle8;
    return role == ST_INT8_O ? r->buffers->attended8 : r->buffers->in8;
}

static struct st_outlier_slice list_slice(const struct st_run *r, const struct st_npu *npu,
                                          struct st_outliers *list) {
    if (!list) return (struct st_outlier_slice){0};
    struct st_slice at = st_mirror_slice(&npu->mirror, list, 0);
    return (struct st_outlier_slice){
        .buffer = at.buffer, .offset = at.offset, .capacity = r->buffers->shadow.capacity};
}

// What a job took, from its submit to now. A device may have begun on its input before that.
static void count_time(const struct st_run *r, const struct st_npu *npu, uint64_t begun,
                       uint64_t device_ns) {
    struct st_node_time *t = &r->buffers->jobs;
    float all = (float)(st_now_ns() - begun) * 1e-9f, device = (float)device_ns * 1e-9f;
    if (device_ns == 0) return;
    t->device += device;
    t->sync +=
        st_device_caps(npu->device)->virtual_clock ? npu->sync_seconds : fmaxf(0.0f, all - device);
    if (st_device_caps(npu->device)->virtual_clock) t->excess += all - device - npu->sync_seconds;
}

// Adds its device's time to *device_ns.
static stint_status join(const struct st_run *r, struct st_job *job, uint64_t *device_ns) {
    struct st_job_result result;
    stint_status status = st_job_join(job, &result);
    *device_ns += result.device_ns;
    if (result.n_clipped)
        atomic_fetch_add_explicit(&r->s->npus.clipped, result.n_clipped, memory_order_relaxed);
    return status;
}

// What is quantized: x, or what x is the norm of where the device computes that. Else the host
// computes the norm that was left.
static const float *input_on(const struct st_run *r, const struct st_operands *o,
                             const struct st_npu *npu, struct st_quantize_args *args) {
    struct st_chunk_buffers *b = r->buffers;
    size_t row = args->n * sizeof(float);
    const float *x = o->x;
    if (b->norm_left) {
        args->norm = st_input_norm_slice(r, npu, o->role);
        args->norm_epsilon = r->s->model->config.norm_epsilon;
        args->normed = st_mirror_slice(&npu->mirror, b->normed, row);
        if (args->norm.buffer) {
            x = b->x;
        } else {
            st_pass_norm(r, b->norm_left, b->x, o->n, b->normed);
            b->norm_left = NULL;
        }
    }
    args->x = st_mirror_slice(&npu->mirror, x, row);
    return x;
}

static stint_status quantize_on(const struct st_run *r, const struct st_operands *o, bool two_term,
                                enum st_npu_kind kind) {
    const struct st_npu *npu = npu_of(r, kind);
    const struct st_linear_op *linear_op = st_run_linear_op(r, o->role, o->expert);
    struct st_shadow *shadow = &r->buffers->shadow;
    struct st_outliers *list = st_shadow_list(shadow, linear_op, shadow->in);
    size_t n = linear_op->weight.n_in;
    struct st_quantize_args args = {.quantized =
                                        st_mirror_slice(&npu->mirror, input_of(r, o->role), 0),
                                    .n_rows = o->n,
                                    .n = n,
                                    .scale = linear_op->weight.input_scale,
                                    .two_term = two_term || linear_op->weight.two_term,
                                    .outliers = list_slice(r, npu, list)};
    struct st_job *job;
    st_int8_abandon(r->buffers); // it may still read what is written next
    const float *x = input_on(r, o, npu, &args);
    ST_TRY(st_mirror_push(&npu->mirror, x, o->n * n * sizeof(float)));
    uint64_t begun = st_now_ns(), device_ns = 0;
    ST_TRY(st_device_quantize(npu->device, &args, NULL, 0, &job));
    r->buffers->quantized_on = kind;
    // Nobody reads what it makes but the graph, which comes after it.
    if (!list && st_device_caps(npu->device)->own_processor) {
        r->buffers->quantizing = job;
        return STINT_OK;
    }
    ST_TRY(join(r, job, &device_ns));
    count_time(r, npu, begun, device_ns);
    return list ? st_mirror_pull_outliers(&npu->mirror, list) : STINT_OK;
}

void st_int8_abandon(struct st_chunk_buffers *buffers) {
    struct st_job *job = buffers->quantizing;
    buffers->quantizing = NULL;
    if (job) (void)st_job_join(job, NULL);
}

// norm: of x where that is still to be computed; or NULL
static stint_status quantize(const struct st_run *r, const struct st_operands *o, bool two_term,
                             const struct st_norm_weight *norm) {
    enum st_npu_kind kind = st_npu_select(r, o->role, o->expert);
    r->buffers->norm_left = norm;
    stint_status status = quantize_on(r, o, two_term, kind);
    if (!st_npu_takes_over(r, kind, status)) return status;
    return quantize_on(r, o, two_term, ST_NPU_HOST);
}

static bool is_outside(const struct st_npu *npu, const float *y) {
    uintptr_t first = (uintptr_t)npu->mirror.host, at = (uintptr_t)y;
    return at < first || at - first >= npu->mirror.bytes;
}

static struct st_slice output_slice(const struct st_npu *npu, const struct st_operands *o,
                                    size_t i) {
    size_t row = o->y_row[i] * sizeof(float);
    if (!o->y[i]) return (struct st_slice){0};
    if (!is_outside(npu, o->y[i])) return st_mirror_slice(&npu->mirror, o->y[i], row);
    if (npu->mirror.shared) st_buffer_rebind(npu->outside, o->y[i], o->n * row);
    return (struct st_slice){npu->outside, 0, row};
}

static stint_status pull_output(const struct st_npu *npu, const struct st_operands *o, size_t i) {
    size_t bytes = o->n * o->y_row[i] * sizeof(float);
    if (!o->y[i]) return STINT_OK;
    if (!is_outside(npu, o->y[i])) return st_mirror_pull(&npu->mirror, o->y[i], bytes);
    if (npu->mirror.shared) return STINT_OK;
    struct st_mapping map;
    ST_TRY(st_buffer_map(npu->outside, 0, bytes, ST_MAP_READ, &map));
    memcpy(o->y[i], map.data, bytes);
    return st_buffer_unmap(&map);
}

static stint_status submit(const struct st_run *r, const struct st_npu *npu, struct st_graph *graph,
                           const struct st_graph_args *args) {
    struct st_job *job, *before = r->buffers->quantizing;
    uint64_t begun = st_now_ns(), device_ns = 0;
    r->buffers->quantizing = NULL;
    stint_status status = st_device_submit(graph, args, &before, before != NULL, &job);
    if (status == STINT_OK) status = join(r, job, &device_ns);
    stint_status first = before ? join(r, before, &device_ns) : STINT_OK;
    count_time(r, npu, begun, device_ns);
    return first == STINT_OK ? status : first; // what failed first has the last word
}

// One linear of a graph as far as its weights are there, then the next part.
static stint_status submit_parts(const struct st_run *r, const struct st_npu *npu,
                                 struct st_linear_id id, uint32_t linear_op, struct st_graph *graph,
                                 struct st_graph_args *args) {
    const struct st_weight_source *source = r->s->source;
    struct st_linear_op_part part = {.linear_op = linear_op};
    size_t n_groups = st_linear_op_groups(st_run_linear_op(r, id.role, id.expert));
    args->part = &part;
    for (; part.group < n_groups; part.group += part.n_groups) {
        ST_TRY(source->acquire(r, id, &part));
        ST_TRY(submit(r, npu, graph, args));
        args->outliers.append = true;
        source->release(r, id, &part);
    }
    return STINT_OK;
}

static stint_status submit_all(const struct st_run *r, const struct st_npu *npu,
                               const struct st_operands *o, uint32_t n_linear_ops,
                               struct st_graph *graph, struct st_graph_args *args) {
    struct st_linear_id id = {o->role, r->layer, o->expert};
    if (!r->s->source->acquire) return submit(r, npu, graph, args);
    for (uint32_t i = 0; i < n_linear_ops; i++, id.role++)
        ST_TRY(submit_parts(r, npu, id, i, graph, args));
    return STINT_OK;
}

// What has been quantized, through a unit's graph.
static stint_status run_on(const struct st_run *r, const struct st_operands *o, bool two_term,
                           enum st_npu_kind kind) {
    const struct st_npu *npu = npu_of(r, kind);
    struct st_shadow *shadow = &r->buffers->shadow;
    bool block = o->role == ST_INT8_UP && !st_config_is_cut(&r->s->model->config, r->layer);
    uint32_t n_linear_ops = block ? 2 : 1;
    struct st_outliers *list = NULL;
    struct st_graph_args args = {.n_rows = o->n,
                                 .in = st_mirror_slice(&npu->mirror, input_of(r, o->role), 0)};
    if (n_linear_ops == 2) {
        const struct st_linear_op *up = st_run_linear_op(r, ST_INT8_UP, o->expert);
        list = st_shadow_list(shadow, st_run_linear_op(r, ST_INT8_DOWN, o->expert), shadow->middle);
        args.middle = st_mirror_slice(&npu->mirror, r->buffers->middle8, 0);
        args.outliers = list_slice(r, npu, list);
        size_t n_ffn = st_config_ffn(&r->s->model->config, r->layer, o->expert);
        if (r->s->model->int8.row_scaled_middle)
            args.floats = st_mirror_slice(&npu->mirror, r->buffers->up, n_ffn * sizeof(float));
        if (up->weight.shadowed && shadow->pending) {
            size_t row = st_linear_op_rows(up) * sizeof(float);
            args.add = st_mirror_slice(&npu->mirror, shadow->add, row);
            args.add_row = st_mirror_slice(&npu->mirror, shadow->add_row, 0);
            ST_TRY(st_mirror_push(&npu->mirror, shadow->add, o->n * row));
            ST_TRY(st_mirror_push(&npu->mirror, shadow->add_row, o->n * sizeof(int32_t)));
        }
    }
    for (size_t i = 0; i < ST_LINEAR_OP_PARTS; i++) args.out[i] = output_slice(npu, o, i);
    struct st_graph *graph = st_npu_graph(r, npu, o->role, o->expert, two_term);
    ST_TRY(submit_all(r, npu, o, n_linear_ops, graph, &args));
    for (size_t i = 0; i < ST_LINEAR_OP_PARTS; i++) ST_TRY(pull_output(npu, o, i));
    return list ? st_mirror_pull_outliers(&npu->mirror, list) : STINT_OK;
}

static stint_status run_unit(const struct st_run *r, const struct st_operands *o, bool two_term) {
    enum st_npu_kind kind = r->buffers->quantized_on;
    stint_status status = run_on(r, o, two_term, kind);
    if (!st_npu_takes_over(r, kind, status)) return status;
    ST_TRY(quantize_on(r, o, two_term, ST_NPU_HOST));
    return run_on(r, o, two_term, ST_NPU_HOST);
}

// ---- Steps of the ops

static stint_status prepare(const struct st_run *r, const struct st_operands *o) {
    return quantize(r, o, false, NULL);
}

static stint_status prepare_normed(const struct st_run *r, const struct st_operands *o,
                                   const struct st_norm_weight *norm) {
    return quantize(r, o, false, norm);
}

static stint_status prepare_two_term(const struct st_run *r, const struct st_operands *o) {
    return quantize(r, o, true, NULL);
}

static void count_shadow(const struct st_run *r, uint64_t *begun) {
    st_session_record(r, ST_SUBGRAPH_SHADOW, *begun);
    st_shadow_count(&r->buffers->shadow.counts.ns, begun);
}

// Columns are read while the device computes.
static stint_status run_linear(const struct st_run *r, const struct st_operands *o, bool two_term) {
    const struct st_linear_op *linear_op = st_run_linear_op(r, o->role, o->expert);
    struct st_shadow *shadow = &r->buffers->shadow;
    uint64_t begun = st_now_ns();
    st_shadow_begin(shadow, linear_op, shadow->in, o->n);
    if (linear_op->weight.shadowed) st_shadow_count(&shadow->counts.ns, &begun);
    ST_TRY(run_unit(r, o, two_term));
    if (linear_op->weight.shadowed) st_shadow_count(&shadow->counts.device_ns, &begun);
    return STINT_OK;
}

static stint_status run(const struct st_run *r, const struct st_operands *o) {
    return run_linear(r, o, false);
}

static stint_status run_two_term(const struct st_run *r, const struct st_operands *o) {
    return run_linear(r, o, true);
}

static stint_status finish(const struct st_run *r, const struct st_operands *o) {
    struct st_shadow *shadow = &r->buffers->shadow;
    uint64_t begun = st_now_ns();
    if (!st_run_linear_op(r, o->role, o->expert)->weight.shadowed) return STINT_OK;
    ST_TRY(st_shadow_finish(shadow, r->group->pool, o->y, o->y_row));
    count_shadow(r, &begun);
    return STINT_OK;
}

static uint8_t linear_apart(const struct stint_model *m, uint32_t layer, enum st_int8_role role) {
    return st_int8_linear_op(&m->int8, role, layer, 0)->weight.shadowed ? ST_SHADOW_AFTER : 0;
}

// The head's rows may be many, and its outputs outside the memory that devices see.
static stint_status run_head_with(const struct st_run *r, const struct st_operands *o,
                                  const struct st_op *op, size_t max_rows) {
    const struct st_npu *npu = npu_of(r, ST_NPU_DEVICE);
    if (!npu->mirror.shared || r->group->npu[ST_NPU_SECOND])
        max_rows = st_min(max_rows, ST_NPU_OUTSIDE_ROWS);
    for (size_t t = 0; t < o->n; t += max_rows) {
        struct st_operands some = *o;
        some.x += t * r->s->model->config.embed;
        some.y[0] += t * o->y_row[0];
        some.n = st_min(max_rows, o->n - t);
        ST_TRY(st_op_all(op, r, &some));
    }
    return STINT_OK;
}

static stint_status run_head(const struct st_run *r, const struct st_operands *o) {
    return run_head_with(r, o, &st_op_int8, r->s->chunk_len);
}

static stint_status run_two_term_head(const struct st_run *r, const struct st_operands *o) {
    return run_head_with(r, o, &st_op_two_term, st_session_step_rows(r->s));
}

const struct st_op st_op_int8 = {.name = "int8",
                                 .prepare = prepare,
                                 .prepare_normed = prepare_normed,
                                 .run = run,
                                 .finish = finish,
                                 .apart = linear_apart};
const struct st_op st_op_two_term = {
    .name = "two-term int8", .prepare = prepare_two_term, .run = run_two_term, .finish = finish};
const struct st_op st_op_int8_head = {.name = "int8", .run = run_head};
const struct st_op st_op_two_term_head = {.name = "two-term int8", .run = run_two_term_head};

// ---- A feed-forward block: both linears in one graph, with the activation between them

stint_status st_int8_before_ffn(const struct st_run *r, const struct st_operands *o) {
    const struct st_linear_op *linear_op = st_run_linear_op(r, ST_INT8_UP, o->expert);
    struct st_shadow *shadow = &r->buffers->shadow;
    uint64_t begun = st_now_ns();
    st_shadow_begin(shadow, linear_op, shadow->in, o->n);
    if (!linear_op->weight.shadowed) return STINT_OK;
    ST_TRY(st_shadow_finish_before(shadow, r->group->pool));
    count_shadow(r, &begun);
    return STINT_OK;
}

static stint_status run_block(const struct st_run *r, const struct st_operands *o, bool two_term) {
    bool shadowed = st_run_linear_op(r, ST_INT8_UP, o->expert)->weight.shadowed ||
                    st_run_linear_op(r, ST_INT8_DOWN, o->expert)->weight.shadowed;
    uint64_t begun = st_now_ns();
    ST_TRY(run_unit(r, o, two_term));
    if (shadowed) st_shadow_count(&r->buffers->shadow.counts.device_ns, &begun);
    return STINT_OK;
}

static stint_status run_ffn(const struct st_run *r, const struct st_operands *o) {
    return run_block(r, o, false);
}

static stint_status run_two_term_ffn(const struct st_run *r, const struct st_operands *o) {
    return run_block(r, o, true);
}

stint_status st_int8_finish_ffn(const struct st_run *r, const struct st_operands *o) {
    const struct st_linear_op *linear_op = st_run_linear_op(r, ST_INT8_DOWN, o->expert);
    struct st_shadow *shadow = &r->buffers->shadow;
    uint64_t begun = st_now_ns();
    if (!linear_op->weight.shadowed) return STINT_OK;
    st_shadow_begin(shadow, linear_op, shadow->middle, o->n);
    ST_TRY(st_shadow_finish(shadow, r->group->pool, o->y, o->y_row));
    count_shadow(r, &begun);
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
                                     .prepare_normed = prepare_normed,
                                     .before = st_int8_before_ffn,
                                     .run = run_ffn,
                                     .finish = st_int8_finish_ffn,
                                     .apart = ffn_apart};
const struct st_op st_op_two_term_ffn = {.name = "two-term int8",
                                         .prepare = prepare_two_term,
                                         .before = st_int8_before_ffn,
                                         .run = run_two_term_ffn,
                                         .finish = st_int8_finish_ffn};

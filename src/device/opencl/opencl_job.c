// SPDX-License-Identifier: Apache-2.0
// The commands of a job. Quantized rows lie as on the host: padded to 64, each with 64 bytes more,
// where its scale is; in two terms a row has two of these.
#include "device/opencl/opencl.h"
#include "device/two_term.h"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        cl_int error_ = (call);                                                                    \
        if (error_ != CL_SUCCESS) return error_;                                                   \
    } while (0)

// ---- Arguments

static cl_mem memory_of(const struct opencl_device *d, const struct st_buffer *buffer) {
    return buffer ? ((const struct opencl_buffer *)buffer)->memory : d->counters; // not read
}

static struct ocl_rows rows_of(const struct st_slice *s) {
    return (struct ocl_rows){s->offset, s->row_bytes};
}

static struct ocl_quantized quantized_of(const struct st_slice *s, size_t n, bool two_term) {
    size_t k = st_int8_padded_k(n), row = k + ST_DEVICE_PAD;
    return (struct ocl_quantized){.rows = {s->offset, (two_term ? ST_TWO_TERMS : 1) * row},
                                  .rest = row,
                                  .scale = k,
                                  .k = (ocl_u32)k,
                                  .two_term = two_term};
}

static struct ocl_outliers outliers_of(const struct opencl_ticket *t,
                                       const struct st_outlier_slice *s) {
    return (struct ocl_outliers){.list = s->offset,
                                 .capacity = (ocl_u32)s->capacity,
                                 .has_list = s->buffer != NULL,
                                 .counter = (ocl_u32)(t - t->device->tickets)};
}

// ---- Commands

// Keeps a job's first and last command.
static void keep(struct opencl_ticket *t, cl_event event) {
    const struct opencl_device *d = t->device;
    if (!t->first) {
        t->first = event;
        return;
    }
    if (t->last) d->cl.clReleaseEvent(t->last);
    t->last = event;
}

cl_int st_opencl_launch(struct opencl_ticket *t, const struct opencl_launch *l,
                        const struct opencl_argument *arguments, cl_uint n) {
    struct opencl_device *d = t->device;
    cl_kernel kernel = d->kernels[l->kernel];
    const size_t local[2] = {l->group, 1}, global[2] = {l->groups * l->group, l->rows};
    cl_event event;
    for (cl_uint i = 0; i < n; i++)
        TRY(OPENCL_CALL(d, clSetKernelArg, kernel, i, arguments[i].bytes, arguments[i].value));
    TRY(OPENCL_CALL(d, clEnqueueNDRangeKernel, d->queue, kernel, 2, NULL, global, local, 0, NULL,
                    &event));
    keep(t, event);
    return CL_SUCCESS;
}

// items: in all of the first dimension, rounded up to groups; `rows` of the second.
static cl_int launch(struct opencl_ticket *t, enum opencl_kernel which,
                     const struct opencl_argument *arguments, cl_uint n, size_t items,
                     size_t rows) {
    size_t group = t->device->settings.items;
    const struct opencl_launch l = {which, group, st_ceil_div(items, group), rows};
    return st_opencl_launch(t, &l, arguments, n);
}

static cl_int fill(struct opencl_ticket *t, cl_mem memory, const cl_uint *words, size_t bytes,
                   size_t offset) {
    cl_event event;
    TRY(OPENCL_CALL(t->device, clEnqueueFillBuffer, t->device->queue, memory, words, bytes, offset,
                    bytes, 0, NULL, &event));
    keep(t, event);
    return CL_SUCCESS;
}

// Before a kernel that may clip: its counter is 0, and its list is empty unless it goes on.
static cl_int begin_counting(struct opencl_ticket *t, const struct st_outlier_slice *s) {
    const cl_uint zero = 0, header[2] = {0, (cl_uint)s->capacity};
    size_t index = (size_t)(t - t->device->tickets);
    TRY(fill(t, t->device->counters, &zero, sizeof zero, index * sizeof zero));
    if (!s->buffer || s->append) return CL_SUCCESS;
    return fill(t, memory_of(t->device, s->buffer), header, sizeof header, s->offset);
}

static cl_int end_counting(struct opencl_ticket *t) {
    size_t index = (size_t)(t - t->device->tickets);
    cl_event event;
    TRY(OPENCL_CALL(t->device, clEnqueueReadBuffer, t->device->queue, t->device->counters, CL_FALSE,
                    index * sizeof t->n_clipped, sizeof t->n_clipped, &t->n_clipped, 0, NULL,
                    &event));
    keep(t, event);
    return CL_SUCCESS;
}

// ---- Norms

struct norm {
    struct st_slice x, y;
    cl_mem weights;
    size_t weight, n_rows, n;
    float epsilon;
};

static cl_int norm_rows(struct opencl_ticket *t, const struct norm *norm) {
    const struct opencl_device *d = t->device;
    const struct ocl_norm args = {.x = rows_of(&norm->x),
                                  .y = rows_of(&norm->y),
                                  .weight = norm->weight,
                                  .n = (ocl_u32)norm->n,
                                  .lanes = d->norm_lanes,
                                  .epsilon = norm->epsilon};
    cl_mem x = memory_of(d, norm->x.buffer), y = memory_of(d, norm->y.buffer);
    const struct opencl_argument arguments[] = {OPENCL_VALUE(args), OPENCL_VALUE(x),
                                                OPENCL_VALUE(norm->weights), OPENCL_VALUE(y)};
    return launch(t, OPENCL_NORM_ROWS, arguments, 4, d->settings.items, norm->n_rows);
}

// ---- Quantizing

static cl_int quantize(struct opencl_ticket *t, const struct st_quantize_args *a) {
    const struct opencl_device *d = t->device;
    const struct ocl_quantize args = {.x = rows_of(&a->x),
                                      .to = quantized_of(&a->quantized, a->n, a->two_term),
                                      .outliers = outliers_of(t, &a->outliers),
                                      .n_rows = (ocl_u32)a->n_rows,
                                      .n = (ocl_u32)a->n,
                                      .scale = a->scale};
    cl_mem x = memory_of(d, a->x.buffer), to = memory_of(d, a->quantized.buffer);
    cl_mem lists = memory_of(d, a->outliers.buffer);
    const struct opencl_argument arguments[] = {OPENCL_VALUE(args), OPENCL_VALUE(x),
                                                OPENCL_VALUE(to), OPENCL_VALUE(lists),
                                                OPENCL_VALUE(d->counters)};
    if (a->scale <= 0.0f)
        return launch(t, OPENCL_QUANTIZE_ROWS, arguments, 3, d->settings.items, a->n_rows);
    TRY(begin_counting(t, &a->outliers));
    TRY(launch(t, OPENCL_QUANTIZE_STATIC, arguments, 5, a->n, a->n_rows));
    return end_counting(t);
}

static cl_int norm_and_quantize(struct opencl_ticket *t) {
    struct st_quantize_args a = t->job->quantize;
    if (!a.norm.buffer) return quantize(t, &a);
    TRY(norm_rows(t, &(struct norm){.x = a.x,
                                    .y = a.normed,
                                    .weights = memory_of(t->device, a.norm.buffer),
                                    .weight = a.norm.offset,
                                    .n_rows = a.n_rows,
                                    .n = a.n,
                                    .epsilon = a.norm_epsilon}));
    a.x = a.normed;
    return quantize(t, &a);
}

// ---- Products

static struct ocl_linear linear_of(const struct opencl_ticket *t, uint32_t i) {
    const struct opencl_graph *g = (const struct opencl_graph *)t->job->graph;
    const struct st_graph_args *a = &t->job->args;
    const struct st_linear_op *op = &g->base.subgraph.linear_ops[i];
    struct ocl_linear l = {
        .x = quantized_of(i ? &a->middle : &a->in, op->weight.n_in, g->base.subgraph.two_term[i]),
        .n_parts = op->n_parts,
        .n_rows = (ocl_u32)a->n_rows,
        .packed_rows = (ocl_u32)st_linear_op_rows(op),
        .sums = op->epilogue == ST_EPILOGUE_SUMS,
        .row_scales = st_int8_row_scales(&op->weight),
        .has_bias = g->weights[i]->has_bias};
    for (uint32_t p = 0; p < op->n_parts; p++) {
        l.out[p] = rows_of(&a->out[p]);
        l.rows[p] = op->rows[p];
    }
    return l;
}

static size_t token_tiles(const struct opencl_ticket *t) {
    return st_ceil_div(t->job->args.n_rows, t->device->settings.tokens);
}

static cl_int run_last(struct opencl_ticket *t, uint32_t i) {
    const struct opencl_device *d = t->device;
    const struct opencl_weights *w = ((const struct opencl_graph *)t->job->graph)->weights[i];
    const struct st_graph_args *a = &t->job->args;
    const struct ocl_linear l = linear_of(t, i);
    cl_mem x = memory_of(d, (i ? &a->middle : &a->in)->buffer), out[ST_LINEAR_OP_PARTS];
    for (int p = 0; p < ST_LINEAR_OP_PARTS; p++) out[p] = memory_of(d, a->out[p].buffer);
    const struct opencl_argument arguments[] = {OPENCL_VALUE(l),         OPENCL_VALUE(x),
                                                OPENCL_VALUE(w->panels), OPENCL_VALUE(w->values),
                                                OPENCL_VALUE(out[0]),    OPENCL_VALUE(out[1]),
                                                OPENCL_VALUE(out[2])};
    return launch(t, OPENCL_LINEAR_FLOAT, arguments, 7, l.packed_rows, token_tiles(t));
}

static cl_int launch_activated(struct opencl_ticket *t, const struct ocl_linear *l) {
    const struct opencl_device *d = t->device;
    const struct opencl_weights *w = ((const struct opencl_graph *)t->job->graph)->weights[0];
    const struct st_graph_args *a = &t->job->args;
    cl_mem x = memory_of(d, a->in.buffer), next = memory_of(d, a->middle.buffer);
    cl_mem add = memory_of(d, a->add.buffer), add_row = memory_of(d, a->add_row.buffer);
    cl_mem floats = memory_of(d, a->floats.buffer), lists = memory_of(d, a->outliers.buffer);
    const struct opencl_argument arguments[] = {OPENCL_VALUE(*l),        OPENCL_VALUE(x),
                                                OPENCL_VALUE(w->panels), OPENCL_VALUE(w->values),
                                                OPENCL_VALUE(add),       OPENCL_VALUE(add_row),
                                                OPENCL_VALUE(next),      OPENCL_VALUE(floats),
                                                OPENCL_VALUE(lists),     OPENCL_VALUE(d->counters)};
    return launch(t, OPENCL_LINEAR_ACTIVATED, arguments, 10, l->rows[0], token_tiles(t));
}

// The first of two linears, and the quantized input of the second.
static cl_int run_first(struct opencl_ticket *t) {
    const struct st_device_subgraph *s = &t->job->graph->subgraph;
    const struct st_graph_args *a = &t->job->args;
    const struct st_int8_weight *second = &s->linear_ops[1].weight;
    struct ocl_linear l = linear_of(t, 0);
    l.gated = s->linear_ops[0].epilogue == ST_EPILOGUE_GATED;
    l.act = s->linear_ops[0].act;
    l.next = quantized_of(&a->middle, second->n_in, s->two_term[1]);
    l.next_scale = second->input_scale;
    l.to_floats = st_int8_row_scales(second);
    l.floats = rows_of(&a->floats);
    l.has_add = a->add.buffer != NULL;
    l.add = rows_of(&a->add);
    l.add_row = a->add_row.offset;
    l.outliers = outliers_of(t, &a->outliers);
    if (!l.to_floats) {
        TRY(begin_counting(t, &a->outliers));
        TRY(launch_activated(t, &l));
        return end_counting(t);
    }
    TRY(launch_activated(t, &l));
    const struct opencl_graph *g = (const struct opencl_graph *)t->job->graph;
    if (g->norm)
        TRY(norm_rows(t, &(struct norm){.x = a->floats,
                                        .y = a->floats,
                                        .weights = g->norm,
                                        .n_rows = a->n_rows,
                                        .n = second->n_in,
                                        .epsilon = s->linear_ops[1].norm_epsilon}));
    return quantize(t, &(struct st_quantize_args){.x = a->floats,
                                                  .quantized = a->middle,
                                                  .n_rows = a->n_rows,
                                                  .n = second->n_in,
                                                  .two_term = s->two_term[1]});
}

// ---- Jobs

static cl_int hang(struct opencl_ticket *t) {
    struct opencl_device *d = t->device;
    cl_int error;
    cl_event event;
    d->hold = OPENCL_MAKE(d, &error, clCreateUserEvent, d->context);
    TRY(error);
    TRY(OPENCL_CALL(d, clEnqueueBarrierWithWaitList, st_opencl_queue_of(t), 1, &d->hold, &event));
    keep(t, event);
    return CL_SUCCESS;
}

static size_t n_rows_of(const struct st_job *job) {
    if (job->kind == ST_JOB_MULTIPLY) return job->multiply.n;
    if (job->kind == ST_JOB_ATTEND) return job->attend.n;
    return job->kind == ST_JOB_GRAPH ? job->args.n_rows : job->quantize.n_rows;
}

cl_int st_opencl_enqueue(struct opencl_ticket *t) {
    const struct st_job *job = t->job;
    if (job->number == t->device->settings.hang) TRY(hang(t));
    if (job->kind == ST_JOB_PROGRAM) return st_opencl_run_program(t);
    if (n_rows_of(job) == 0) return CL_SUCCESS;
    if (job->kind == ST_JOB_QUANTIZE) return norm_and_quantize(t);
    if (job->kind == ST_JOB_MULTIPLY) return st_opencl_multiply(t);
    if (job->kind == ST_JOB_ATTEND) return st_opencl_attend(t);
    uint32_t last = job->graph->subgraph.n_linear_ops - 1;
    if (last) TRY(run_first(t));
    return run_last(t, last);
}

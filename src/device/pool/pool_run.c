// SPDX-License-Identifier: Apache-2.0
// A job runs in its submit on all borrowed workers: groups of its weights' rows are handed out,
// each with rows of input that it meets while it lies in the second-level cache, and the sums
// become floats or the next linear's INT8 before they leave the first (llm.npu, section 3.1;
// docs/ARCHITECTURE.md). Quantized rows lie one behind the other, in two terms q, then its rest.
#include "base/thread.h"
#include "device/epilogue.h"
#include "device/pool/pool.h"
#include "device/two_term.h"

#include <stdatomic.h>
#include <string.h>

enum {
    ITEM_ROWS = 64, // of the kernels' input in an item, about
    STEP_ROWS = 32, // of a step, at most
};

// One linear of a job.
struct run {
    const struct pool_device *device;
    const struct st_graph_args *args;
    const struct st_int8_kernel *kernel;
    struct st_epilogue_run epilogue;
    const uint8_t *x;
    size_t x_row, n_x; // rows of the kernels' input
    bool straight;     // from nested codes, no panels are made
    size_t group;      // the first that runs
    size_t per_item;   // rows of the kernels' input that one item takes
    size_t n_items;    // of a group
    atomic_size_t n_clipped;
};

static unsigned char *data_at(struct st_buffer *buffer, size_t offset) {
    return ((struct pool_buffer *)buffer)->data + offset;
}

static void *data_of(const struct st_slice *s) {
    return s->buffer ? data_at(s->buffer, s->offset) : NULL;
}

// Padded as the kernels read it, and off the powers of two, whose rows would share cache sets.
static size_t row_of(size_t n) {
    return st_int8_padded_k(n) + ST_DEVICE_PAD;
}

static struct st_quantized quantized_at(const struct pool_device *d, const struct st_slice *s,
                                        size_t n, bool two_term) {
    size_t row = row_of(n);
    return (struct st_quantized){.data = data_of(s),
                                 .row = (two_term ? ST_TWO_TERMS : 1) * row,
                                 .rest = row,
                                 .scale = st_int8_padded_k(n), // in the first row's padding
                                 .zero = d->kernel->zero,
                                 .two_term = two_term};
}

static struct st_outliers *outliers_at(const struct st_outlier_slice *s) {
    struct st_outliers *list = s->buffer ? (void *)data_at(s->buffer, s->offset) : NULL;
    if (list && !s->append) st_outliers_reset(list, s->capacity);
    return list;
}

// ---- Quantizing

struct quantizing {
    const struct pool_device *device;
    const struct st_quantize_args *args;
    struct st_quantized to;
    struct st_outliers *outliers;
    atomic_size_t n_clipped;
};

static void quantize_row(void *context, size_t t, size_t worker) {
    (void)worker;
    struct quantizing *q = context;
    const struct st_quantize_args *a = q->args;
    const float *x = (const float *)((const char *)data_of(&a->x) + t * a->x.row_bytes);
    if (a->scale <= 0.0f) {
        st_quantize_own_scale(q->device->elementwise, &q->to, x, a->n, t);
        return;
    }
    size_t clipped =
        st_quantize_row(q->device->elementwise, &q->to, x, a->n, a->scale, t, 0, q->outliers);
    if (clipped) atomic_fetch_add_explicit(&q->n_clipped, clipped, memory_order_relaxed);
}

static size_t quantize(const struct pool_device *d, const struct st_quantize_args *args) {
    struct quantizing q = {.device = d,
                           .args = args,
                           .to = quantized_at(d, &args->quantized, args->n, args->two_term),
                           .outliers = outliers_at(&args->outliers)};
    st_pool_run(d->workers, quantize_row, &q, args->n_rows);
    return q.n_clipped;
}

// ---- Products

// Both terms at once, where that is faster and the sums of each are not asked for.
static bool is_joint(const struct run *r) {
    const struct st_int8_kernel *kernel = r->kernel;
    return r->epilogue.two_term && kernel->two && r->n_x >= ST_TWO_TERMS * kernel->two_from &&
           r->epilogue.linear_op->epilogue != ST_EPILOGUE_SUMS;
}

// One group's panels times n rows of input from `at` on. Returns how many elements were clipped.
static size_t multiply(const struct run *r, const int8_t *panels, size_t group, size_t n_panels,
                       size_t at, size_t n) {
    const struct st_int8_kernel *kernel = r->kernel;
    size_t k = st_int8_padded_k(r->epilogue.linear_op->weight.n_in),
           panel_bytes = k * ST_INT8_PANEL, terms = r->epilogue.two_term ? ST_TWO_TERMS : 1;
    _Alignas(64) int32_t sums[ST_INT8_SUMS];
    for (size_t p = 0; p < n_panels; p += kernel->panels)
        kernel->tile(panels + p * panel_bytes, st_min(kernel->panels, n_panels - p),
                     r->x + at * r->x_row, r->x_row, n, k, sums + p * ST_INT8_PANEL,
                     ST_DEVICE_GROUP);
    return st_epilogue(&r->epilogue, group * ST_DEVICE_GROUP, n_panels * ST_INT8_PANEL, at / terms,
                       n / terms, sums);
}

// The same of both terms at once.
static size_t multiply_joint(const struct run *r, const int8_t *panels, size_t group,
                             size_t n_panels, size_t at, size_t n) {
    const struct st_int8_kernel *kernel = r->kernel;
    size_t k = st_int8_padded_k(r->epilogue.linear_op->weight.n_in),
           panel_bytes = k * ST_INT8_PANEL;
    const int32_t *row_sums = r->epilogue.linear_op->weight.row_sums + group * ST_DEVICE_GROUP;
    _Alignas(64) float sums[ST_INT8_SUMS / 2];
    for (size_t p = 0; p < n_panels; p += kernel->panels)
        kernel->two(panels + p * panel_bytes, row_sums + p * ST_INT8_PANEL,
                    st_min(kernel->panels, n_panels - p), r->x + at * r->x_row, r->x_row,
                    n / ST_TWO_TERMS, k, sums + p * ST_INT8_PANEL, ST_DEVICE_GROUP);
    return st_epilogue_joint(&r->epilogue, group * ST_DEVICE_GROUP, n_panels * ST_INT8_PANEL,
                             at / ST_TWO_TERMS, n / ST_TWO_TERMS, sums);
}

// Made in this worker's cache, where they stay until all rows of input have passed.
static const int8_t *make_panels(const struct run *r, size_t group, size_t n, size_t worker) {
    int8_t *panels = (int8_t *)r->device->groups + worker * r->device->group_bytes;
    st_weight_set_panels(r->epilogue.linear_op, r->device->nested,
                         group * (ST_DEVICE_GROUP / ST_INT8_PANEL), n, panels);
    return panels;
}

// Whether each worker makes the linear's panels of nested codes.
static bool makes_panels(const struct run *r) {
    return !r->args->part && !r->epilogue.linear_op->weight.panels;
}

// The weights of a group of n panels.
static const int8_t *group_panels(const struct run *r, size_t group, size_t n, size_t worker) {
    const struct st_linear_op_part *part = r->args->part;
    size_t bytes = st_linear_op_group_bytes(r->epilogue.linear_op);
    if (makes_panels(r)) return make_panels(r, group, n, worker);
    if (!part) return r->epilogue.linear_op->weight.panels + group * bytes;
    const int8_t *slice = data_of(&part->slices[group / part->slice_groups]);
    return slice + group % part->slice_groups * bytes;
}

// The rows as a kernel takes them that has another byte for zero than the device's.
static void turn_rows(struct run *r, uint8_t zero) {
    size_t k = r->epilogue.linear_op->weight.n_in, row = st_int8_padded_k(k);
    uint8_t *copy = r->device->turned, turned = zero ^ r->device->kernel->zero;
    for (size_t t = 0; t < r->n_x; t++) {
        const uint8_t *x = r->x + t * r->x_row;
        uint8_t *to = copy + t * row;
        for (size_t i = 0; i < k; i++) to[i] = x[i] ^ turned;
        memset(to + k, 0, row - k);
    }
    r->x = copy;
    r->x_row = row;
    r->epilogue.zero = zero;
}

// Few rows are multiplied straight from nested codes, as a panel would meet them only once or
// twice, and by vectors where the device's kernel is for a tile unit, which they leave mostly
// empty.
static void select_kernel(struct run *r) {
    const struct pool_device *d = r->device;
    r->kernel = d->kernel;
    if (makes_panels(r) && r->n_x <= ST_NESTED_INT8_TOKENS) {
        turn_rows(r, d->nested->zero);
        r->straight = true;
    } else if (d->few != d->kernel && r->n_x <= ST_POOL_FEW_ROWS) {
        turn_rows(r, d->few->zero);
        r->kernel = d->few;
    }
}

static void run_straight(struct run *r, size_t from, size_t to) {
    size_t n_panels = r->epilogue.linear_op->weight.n_panels, clipped = 0;
    size_t per_group = ST_DEVICE_GROUP / ST_INT8_PANEL;
    _Alignas(64) int32_t sums[ST_NESTED_INT8_TOKENS * ST_DEVICE_GROUP];
    for (size_t group = from; group < to; group++) {
        size_t here = st_min(per_group, n_panels - group * per_group);
        st_weight_set_products(r->epilogue.linear_op, r->device->nested, group * per_group, here,
                               r->x, r->x_row, r->n_x, sums, ST_DEVICE_GROUP);
        clipped += st_epilogue(&r->epilogue, group * ST_DEVICE_GROUP, here * ST_INT8_PANEL, 0,
                               r->epilogue.two_term ? r->n_x / ST_TWO_TERMS : r->n_x, sums);
    }
    if (clipped) atomic_fetch_add_explicit(&r->n_clipped, clipped, memory_order_relaxed);
}

// The most rows of the kernels' input that one product takes. The weights of a step come from
// memory; most rows of a prompt find them in the cache.
static size_t most_rows(const struct run *r) {
    const struct st_int8_kernel *kernel = r->kernel;
    bool cold = r->n_x <= STEP_ROWS;
    size_t tokens = cold ? kernel->cold_tokens : kernel->tokens;
    if (!r->epilogue.two_term) return tokens;
    return is_joint(r) ? ST_TWO_TERMS * (cold ? kernel->two_cold_inputs : kernel->two_inputs)
                       : tokens / ST_TWO_TERMS * ST_TWO_TERMS;
}

// An item is a group's weights and some of the rows, so that threads end together where a linear
// has few groups; and all rows where the thread first makes the weights.
static void divide(struct run *r) {
    r->per_item = makes_panels(r) ? r->n_x : st_round_up(ITEM_ROWS, most_rows(r));
    r->n_items = st_ceil_div(r->n_x, r->per_item);
}

// Items [from, to) of all groups that run.
static void run_items(void *context, size_t from, size_t to, size_t worker) {
    struct run *r = context;
    if (r->straight) {
        run_straight(r, from, to);
        return;
    }
    const struct st_linear_op *linear_op = r->epilogue.linear_op;
    size_t n_panels = linear_op->weight.n_panels, per_group = ST_DEVICE_GROUP / ST_INT8_PANEL;
    size_t most = most_rows(r), clipped = 0, here = 0;
    bool joint = is_joint(r);
    const int8_t *panels = NULL;
    for (size_t item = from; item < to; item++) {
        size_t group = r->group + item / r->n_items, first = item % r->n_items * r->per_item;
        if (item == from || first == 0) {
            here = st_min(per_group, n_panels - group * per_group);
            panels = group_panels(r, group, here, worker);
        }
        for (size_t at = first; at < st_min(first + r->per_item, r->n_x); at += most)
            clipped += (joint ? multiply_joint : multiply)(r, panels, group, here, at,
                                                           st_min(most, r->n_x - at));
    }
    if (clipped) atomic_fetch_add_explicit(&r->n_clipped, clipped, memory_order_relaxed);
}

static struct st_epilogue_run epilogue_of(const struct pool_device *d, const struct st_graph *graph,
                                          const struct st_graph_args *args, uint32_t linear_op,
                                          struct st_outliers *outliers) {
    const struct st_device_subgraph *s = &graph->subgraph;
    struct st_epilogue_run e = {.elementwise = d->elementwise,
                                .linear_op = &s->linear_ops[linear_op],
                                .zero = d->kernel->zero,
                                .two_term = s->two_term[linear_op]};
    if (st_int8_row_scales(&e.linear_op->weight)) {
        struct st_quantized in = quantized_at(d, linear_op ? &args->middle : &args->in,
                                              e.linear_op->weight.n_in, e.two_term);
        e.scales = in.data + in.scale;
        e.scales_row = in.row;
    }
    if (linear_op + 1 == s->n_linear_ops) {
        for (uint32_t i = 0; i < e.linear_op->n_parts; i++) {
            e.out[i] = data_of(&args->out[i]);
            e.out_row[i] = args->out[i].row_bytes / sizeof(float);
        }
        return e;
    }
    e.next = quantized_at(d, &args->middle, s->linear_ops[1].weight.n_in, s->two_term[1]);
    e.next_scale = s->linear_ops[1].weight.input_scale;
    if (st_int8_row_scales(&s->linear_ops[1].weight)) {
        e.next_floats = data_of(&args->floats);
        e.next_row = args->floats.row_bytes / sizeof(float);
    }
    e.outliers = outliers;
    e.add = data_of(&args->add);
    e.add_row_floats = args->add.row_bytes / sizeof(float);
    e.add_row = data_of(&args->add_row);
    return e;
}

struct norming {
    const struct pool_device *device;
    const struct st_linear_op *linear_op;
    const struct st_slice *x;
};

static void norm_row(void *context, size_t t, size_t worker) {
    const struct norming *n = context;
    float *x = (float *)((char *)data_of(n->x) + t * n->x->row_bytes);
    (void)worker;
    n->device->elementwise->rmsnorm(x, n->linear_op->norm, n->linear_op->norm_epsilon,
                                    n->linear_op->weight.n_in, x);
}

// What lies between two linears, once all of it is there.
static void quantize_middle(const struct pool_device *d, const struct st_graph *graph,
                            const struct st_graph_args *args) {
    const struct st_device_subgraph *s = &graph->subgraph;
    struct norming norming = {d, &s->linear_ops[1], &args->floats};
    if (s->linear_ops[1].norm) st_pool_run(d->workers, norm_row, &norming, args->n_rows);
    quantize(d, &(struct st_quantize_args){.x = args->floats,
                                           .quantized = args->middle,
                                           .n_rows = args->n_rows,
                                           .n = s->linear_ops[1].weight.n_in,
                                           .two_term = s->two_term[1]});
}

static size_t run_graph(const struct pool_device *d, const struct st_graph *graph,
                        const struct st_graph_args *args) {
    const struct st_device_subgraph *s = &graph->subgraph;
    const struct st_linear_op_part *part = args->part;
    bool to_middle = s->n_linear_ops == 2 && (!part || part->linear_op == 0);
    struct st_outliers *outliers = to_middle ? outliers_at(&args->outliers) : NULL;
    size_t clipped = 0;
    for (uint32_t i = 0; i < s->n_linear_ops; i++) {
        if (part && part->linear_op != i) continue;
        const struct st_linear_op *linear_op = &s->linear_ops[i];
        struct run r = {.device = d,
                        .args = args,
                        .epilogue = epilogue_of(d, graph, args, i, outliers),
                        .x = data_of(i ? &args->middle : &args->in),
                        .x_row = row_of(linear_op->weight.n_in),
                        .n_x = args->n_rows * (s->two_term[i] ? ST_TWO_TERMS : 1),
                        .group = part ? part->group : 0};
        if (i == 1 && r.group == 0 && st_int8_row_scales(&linear_op->weight))
            quantize_middle(d, graph, args);
        select_kernel(&r);
        divide(&r);
        st_pool_run_ranges(d->workers, run_items, &r,
                           r.n_items * (part ? part->n_groups : st_linear_op_groups(linear_op)), 1);
        clipped += r.n_clipped;
    }
    return clipped;
}

// Jobs before it have ended: each ends in its submit.
void st_pool_device_start(struct st_device *device, struct st_job *job) {
    const struct pool_device *d = (const struct pool_device *)device;
    if (job->ready != ST_READY_RUN) {
        st_job_finish(job, ST_FAILURE_CANCELED, 0);
        return;
    }
    size_t clipped = job->kind == ST_JOB_QUANTIZE ? quantize(d, &job->quantize)
                                                  : run_graph(d, job->graph, &job->args);
    st_job_finish(job, ST_FAILURE_NONE, clipped);
}

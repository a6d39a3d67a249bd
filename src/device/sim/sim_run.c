// SPDX-License-Identifier: Apache-2.0
// The work of a job, in plain loops over the device's own memory and layouts. Quantized inputs are
// signed rows without padding; in two terms all the q come first, then all the rests.
#include "device/sim/sim.h"

#include "device/two_term.h"

#include <string.h>

static unsigned char *data_at(struct st_buffer *buffer, size_t offset) {
    return ((struct sim_buffer *)buffer)->memory + offset;
}

static void *data_of(const struct st_slice *s) {
    return s->buffer ? data_at(s->buffer, s->offset) : NULL;
}

static float *row_of(const struct st_slice *s, size_t t) {
    return (float *)((char *)data_of(s) + t * s->row_bytes);
}

static struct st_quantized quantized_at(const struct st_slice *s, size_t n_rows, size_t n,
                                        bool two_term) {
    return (struct st_quantized){
        .data = data_of(s), .row = n, .rest = n_rows * n, .two_term = two_term};
}

static struct st_outliers *outliers_at(const struct st_outlier_slice *s) {
    struct st_outliers *list = s->buffer ? (void *)data_at(s->buffer, s->offset) : NULL;
    if (list && !s->append) st_outliers_reset(list, s->capacity);
    return list;
}

bool st_sim_is_over(struct sim_device *d, const struct st_job *job) {
    pthread_mutex_lock(&d->base.mutex);
    bool over = job->canceled || d->closing || d->base.lost;
    pthread_mutex_unlock(&d->base.mutex);
    return over;
}

static bool quantize(struct sim_device *d, const struct st_job *job, size_t *n_clipped) {
    const struct st_quantize_args *a = &job->quantize;
    struct st_quantized to = quantized_at(&a->quantized, a->n_rows, a->n, a->two_term);
    struct st_outliers *outliers = outliers_at(&a->outliers);
    for (size_t t = 0; t < a->n_rows; t++) {
        const float *x = row_of(&a->x, t);
        if (st_sim_is_over(d, job)) return false;
        if (a->norm.buffer) {
            float *normed = row_of(&a->normed, t);
            d->elementwise->rmsnorm(x, data_of(&a->norm), a->norm_epsilon, a->n, normed);
            x = normed;
        }
        *n_clipped += st_quantize_row(d->elementwise, &to, x, a->n, a->scale, t, 0, outliers);
    }
    return true;
}

// sums[0, ST_SIM_BLOCK) of one block and one row of input
static void multiply_block(const int8_t *w, const int8_t *x, size_t n, int32_t *sums) {
    int32_t total[ST_SIM_BLOCK] = {0};
    for (size_t k = 0; k < n; k++, w += ST_SIM_BLOCK)
        for (size_t i = 0; i < ST_SIM_BLOCK; i++) total[i] += x[k] * w[i];
    memcpy(sums, total, sizeof total);
}

struct product {
    struct st_epilogue_run epilogue;
    const struct st_int8_kernel *kernel; // or NULL
    const int8_t *blocks;
    struct st_quantized x;
    uint8_t *kernel_x; // of the rows at hand
};

// Rows [row, row + n_rows) of the packed ones for n rows of input.
static size_t run_group(const struct product *p, size_t row, size_t n_rows, size_t token,
                        size_t n) {
    size_t terms = p->x.two_term ? ST_TWO_TERMS : 1, n_in = p->epilogue.linear_op->weight.n_in;
    _Alignas(64) int32_t sums[ST_TWO_TERMS * ST_SIM_TOKENS * ST_DEVICE_GROUP];
    if (p->kernel)
        st_sim_kernel_sums(p->kernel, p->blocks, n_in, row, n_rows, p->kernel_x, n * terms, sums);
    for (size_t i = 0; i < n * terms && !p->kernel; i++) {
        const uint8_t *x = p->x.data + (token + i / terms) * p->x.row + i % terms * p->x.rest;
        for (size_t r = 0; r < n_rows; r += ST_SIM_BLOCK)
            multiply_block(p->blocks + (row + r) * n_in, (const int8_t *)x, n_in,
                           sums + i * ST_DEVICE_GROUP + r);
    }
    return st_epilogue(&p->epilogue, row, n_rows, token, n, sums);
}

static bool run_product(struct sim_device *d, const struct st_job *job, const struct product *p,
                        size_t *n_clipped) {
    size_t rows = st_linear_op_rows(p->epilogue.linear_op), n_rows = job->args.n_rows;
    for (size_t t = 0; t < n_rows; t += ST_SIM_TOKENS) {
        size_t n = st_min(ST_SIM_TOKENS, n_rows - t);
        if (p->kernel)
            st_sim_kernel_input(p->kernel, &p->x, p->epilogue.linear_op->weight.n_in, t, n,
                                p->kernel_x);
        for (size_t row = 0; row < rows; row += ST_DEVICE_GROUP) {
            if (st_sim_is_over(d, job)) return false;
            *n_clipped += run_group(p, row, st_min(ST_DEVICE_GROUP, rows - row), t, n);
        }
    }
    return true;
}

static struct product product_of(const struct sim_device *d, const struct st_job *job,
                                 uint32_t linear_op) {
    const struct st_device_subgraph *s = &job->graph->subgraph;
    const struct st_graph_args *a = &job->args;
    const struct sim_graph *graph = (const struct sim_graph *)job->graph;
    struct product p = {
        .kernel = d->kernel, .blocks = graph->blocks[linear_op], .kernel_x = graph->x};
    struct st_epilogue_run *e = &p.epilogue;
    e->elementwise = d->elementwise;
    e->linear_op = &s->linear_ops[linear_op];
    e->two_term = s->two_term[linear_op];
    e->zero = d->kernel ? d->kernel->zero : 0;
    p.x = quantized_at(linear_op ? &a->middle : &a->in, a->n_rows, e->linear_op->weight.n_in,
                       e->two_term);
    if (linear_op + 1 == s->n_linear_ops) {
        for (uint32_t i = 0; i < e->linear_op->n_parts; i++) {
            e->out[i] = data_of(&a->out[i]);
            e->out_row[i] = a->out[i].row_bytes / sizeof(float);
        }
        return p;
    }
    e->next = quantized_at(&a->middle, a->n_rows, s->linear_ops[1].weight.n_in, s->two_term[1]);
    e->next_scale = s->linear_ops[1].weight.input_scale;
    e->outliers = outliers_at(&a->outliers);
    e->add = data_of(&a->add);
    e->add_row_floats = a->add.row_bytes / sizeof(float);
    e->add_row = data_of(&a->add_row);
    return p;
}

bool st_sim_run(struct sim_device *d, const struct st_job *job, size_t *n_clipped) {
    if (job->kind == ST_JOB_QUANTIZE) return quantize(d, job, n_clipped);
    if (job->kind == ST_JOB_MULTIPLY) return st_sim_multiply(d, job);
    for (uint32_t i = 0; i < job->graph->subgraph.n_linear_ops; i++) {
        const struct product p = product_of(d, job, i);
        if (!run_product(d, job, &p, n_clipped)) return false;
    }
    return true;
}

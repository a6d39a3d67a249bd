// SPDX-License-Identifier: Apache-2.0
// Linears over quantized blocks as a GGUF file has them: integer products with inputs of 15
// bits, for steps. Linears of a unit that are stored in another way run in float beside them.
#include "session/linear/op.h"

#include "base/size.h"
#include "session/linear/rows.h"
#include "session/linear/stored_run.h"

enum {
    MIN_ROWS = 16, // that a worker takes at a time; panels have no more (kernels/blocks_panels.h)
    MIN_BYTES = 16384, // the same, because a stream costs time to begin; but fewer where
    FAIR_SHARES = 4,   // that would leave a worker less than so many turns
};

struct job {
    const struct st_run *run;
    const float *x;
    size_t k, n_chunks, n; // of a column; columns
    const struct st_operands *operands;
    size_t column, n_columns; // of the operands: the first one here; all
    uint32_t on_device;       // bits of the operands whose products a device has computed
    bool quantized;           // all columns, which stay in the buffers
    uint64_t own;             // number of the input, which each worker quantizes for itself; or 0
    const struct st_linear_weight *const *all; // of the operands
    size_t n_all;
    size_t n_linears; // of them, those that are blocks
    const struct st_linear_weight *weights[ST_MAX_LINEARS];
    size_t place[ST_MAX_LINEARS];         // of each among the operands
    const struct st_rows *rows;           // of each, those at hand
    size_t first_row[ST_MAX_LINEARS + 1]; // of each, if they lay one after another
};

// Chunk `item` of all columns.
static void quantize_to(const struct job *job, size_t item, struct st_blocks_chunk *to) {
    st_blocks_quantize(job->run->s->kernels.blocks, job->x + item / job->n_chunks * job->k, job->k,
                       item % job->n_chunks, to);
}

static void quantize_chunk(void *context, size_t item, size_t worker) {
    (void)worker;
    const struct job *job = context;
    quantize_to(job, item, job->run->buffers->blocks + item);
}

static void quantize(struct job *job) {
    size_t n = job->n * job->n_chunks;
    if (n > ST_OWN_CHUNKS)
        st_pool_run(job->run->group->pool, quantize_chunk, job, n);
    else
        for (size_t i = 0; i < n; i++) quantize_chunk(job, i, 0);
}

// Each worker quantizes a short input for itself: to read what another core has just written takes
// longer. Not where a device reads it, too, or where columns come one group after another.
static uint64_t own_number(const struct job *job) {
    const struct st_worker_group *group = job->run->group;
    bool is_short =
        job->n_columns <= ST_BLOCKS_MAX_COLUMNS && job->n_columns * job->n_chunks <= ST_OWN_CHUNKS;
    if (!is_short || group->n_threads == 1 || job->run->s->stored.device) return 0;
    return ++group->workers[0].own->given;
}

static const struct st_blocks_chunk *input_of(const struct job *job, size_t worker) {
    if (!job->own) return job->run->buffers->blocks;
    struct st_own_input *own = job->run->group->workers[worker].own;
    if (own->number == job->own) return own->chunks;
    for (size_t i = 0; i < job->n * job->n_chunks; i++) quantize_to(job, i, own->chunks + i);
    own->number = job->own;
    return own->chunks;
}

struct part {
    const struct job *job;
    const struct st_blocks_chunk *x;
};

// Rows [row, row1) of those at hand of one linear.
static void multiply(const void *context, size_t i, size_t row, size_t row1) {
    const struct part *part = context;
    const struct job *job = part->job;
    const struct st_linear_weight *w = job->weights[i];
    const struct st_rows *rows = &job->rows[i];
    size_t y_row = job->operands->y_row[job->place[i]];
    float *y = job->operands->y[job->place[i]] + job->column * y_row + rows->first;
    if (!(job->on_device >> job->place[i] & 1))
        job->run->s->kernels.blocks->fn[w->dtype](rows->data + row * w->row_bytes, w->row_bytes,
                                                  row1 - row, w->n_in, part->x, job->n, y + row,
                                                  y_row);
    for (size_t t = 0; t < job->n; t++) {
        float *to = y + t * y_row;
        for (size_t r = row; r < row1 && w->bias; r++) to[r] += w->bias[rows->first + r];
        for (size_t r = row; r < row1 && w->scale != 0.0f; r++) to[r] *= w->scale;
    }
}

static void multiply_range(void *context, size_t from, size_t to, size_t worker) {
    const struct job *job = context;
    const struct part part = {job, input_of(job, worker)};
    st_linears_between(job->first_row, job->n_linears, from, to, multiply, &part);
}

static size_t least_rows(const struct job *job) {
    size_t n = job->first_row[job->n_linears], widest = 1;
    size_t fair = n / (FAIR_SHARES * st_pool_threads(job->run->group->pool));
    for (size_t i = 0; i < job->n_linears; i++) widest = st_max(widest, job->weights[i]->row_bytes);
    size_t least = st_min(MIN_BYTES / widest / job->n, fair); // more columns take more time
    return st_max(MIN_ROWS, job->n > 1 ? st_round_up(least, MIN_ROWS) : least);
}

static uint32_t run_on_device(const struct job *job) {
    const struct st_stored_input input = {
        .form = ST_STORED_BLOCKS, .chunks = job->run->buffers->blocks, .n = job->n, .k = job->k};
    return st_stored_multiply(job->run, job->operands, job->column, job->all, job->n_all, &input);
}

// Of more columns than the buffers hold, the rows at hand meet all before the next rows come.
static void run_rows(void *context, const struct st_rows *rows) {
    struct job *job = context;
    const float *x = job->x;
    job->rows = rows;
    st_rows_first(rows, job->n_linears, job->first_row);
    for (job->column = 0; job->column < job->n_columns; job->column += job->n) {
        job->n = st_min(ST_BLOCKS_MAX_COLUMNS, job->n_columns - job->column);
        job->x = x + job->column * job->k;
        if (!job->quantized && !job->own) quantize(job);
        job->quantized = job->n == job->n_columns;
        job->on_device = run_on_device(job);
        st_pool_run_ranges(job->run->group->pool, multiply_range, job,
                           job->first_row[job->n_linears], least_rows(job));
    }
    job->x = x;
}

// Linears [first, end) of the operands.
static stint_status run_some(const struct st_run *r, const struct st_operands *o, const float *x,
                             const struct st_linear_weight *const *weights, size_t first,
                             size_t end) {
    struct job job = {.run = r,
                      .x = x,
                      .k = weights[first]->n_in,
                      .operands = o,
                      .n_columns = o->n,
                      .all = weights,
                      .n_all = end};
    job.n_chunks = st_blocks_chunks(job.k);
    for (size_t i = first; i < end; i++) {
        const struct st_linear_weight *w = weights[i];
        if (!st_blocks_has(w->dtype)) {
            struct st_operands one = {.x = x, .n = o->n, .y = {o->y[i]}, .y_row = {o->y_row[i]}};
            ST_TRY(st_float_linears(r, &one, &w, 1));
            continue;
        }
        job.place[job.n_linears] = i;
        job.weights[job.n_linears++] = w;
    }
    job.own = own_number(&job);
    return job.n_linears ? st_rows_each(r, job.weights, job.n_linears, run_rows, &job) : STINT_OK;
}

// What is read on demand is taken in the order in which it is read ahead.
static stint_status run(const struct st_run *r, const struct st_operands *o) {
    const struct st_linear_weight *weights[ST_MAX_LINEARS];
    size_t n = st_operands_linears(r, o, weights), step = weights[0]->piece ? 1 : n;
    const float *x = st_float_input(r, o);
    for (size_t i = 0; i < n; i += step) ST_TRY(run_some(r, o, x, weights, i, i + step));
    return STINT_OK;
}

void st_blocks_lay_out(size_t widest, struct st_chunk_buffers *buffers, struct st_arena *arena) {
    buffers->blocks =
        ST_TAKE(arena, struct st_blocks_chunk, ST_BLOCKS_MAX_COLUMNS * st_blocks_chunks(widest));
}

const struct st_op st_op_blocks = {.name = "blocks", .run = run};

stint_status st_lone_linears(const struct st_run *r, const struct st_operands *o,
                             const struct st_linear_weight *const *weights, size_t n_linears) {
    return st_runs_in_blocks(r->s->model, r->phase) ? run_some(r, o, o->x, weights, 0, n_linears)
                                                    : st_float_linears(r, o, weights, n_linears);
}

stint_status st_lone_linear_rows(const struct st_run *r, const float *x, size_t n,
                                 const struct st_linear_weight *weight, float *y, size_t y_row) {
    struct st_operands o = {.x = x, .n = n, .y = {y}, .y_row = {y_row}};
    return st_lone_linears(r, &o, &weight, 1);
}

stint_status st_lone_linear(const struct st_run *r, const float *x, size_t n,
                            const struct st_linear_weight *weight, float *y) {
    return st_lone_linear_rows(r, x, n, weight, y, weight->n_out);
}

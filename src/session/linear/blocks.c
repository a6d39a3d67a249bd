// SPDX-License-Identifier: Apache-2.0
// Linears over quantized blocks as a GGUF file has them: integer products with inputs of 15
// bits, for steps. Linears of a unit that are stored in another way run in float beside them.
#include "session/linear/op.h"

#include "base/size.h"

enum {
    MIN_ROWS = 16,     // that a worker takes at a time
    ALONE_CHUNKS = 32, // of an input, that one thread quantizes as fast as several
};

struct job {
    const struct st_run *run;
    const float *x;
    size_t k, n_chunks, n; // of a column; columns
    const struct st_operands *operands;
    size_t column; // of the operands, the first one here
    size_t n_linears;
    const struct st_linear_weight *weights[ST_MAX_LINEARS];
    size_t place[ST_MAX_LINEARS];         // of each among the operands
    size_t first_row[ST_MAX_LINEARS + 1]; // of each, if they lay one after another
};

// Of all columns.
static void quantize_chunk(void *context, size_t item, size_t worker) {
    (void)worker;
    const struct job *job = context;
    st_blocks_quantize(job->run->s->kernels.blocks, job->x + item / job->n_chunks * job->k, job->k,
                       item % job->n_chunks, job->run->buffers->blocks + item);
}

static void quantize(struct job *job) {
    size_t n = job->n * job->n_chunks;
    if (n > ALONE_CHUNKS)
        st_pool_run(job->run->group->pool, quantize_chunk, job, n);
    else
        for (size_t i = 0; i < n; i++) quantize_chunk(job, i, 0);
}

// Rows [row, row1) of one linear.
static void multiply(const void *context, size_t i, size_t row, size_t row1) {
    const struct job *job = context;
    const struct st_linear_weight *w = job->weights[i];
    size_t y_row = job->operands->y_row[job->place[i]];
    float *y = job->operands->y[job->place[i]] + job->column * y_row;
    job->run->s->kernels.blocks->fn[w->dtype]((const unsigned char *)w->data + row * w->row_bytes,
                                              w->row_bytes, row1 - row, w->n_in,
                                              job->run->buffers->blocks, job->n, y + row, y_row);
    for (size_t t = 0; t < job->n && w->bias; t++)
        for (size_t r = row; r < row1; r++) y[t * y_row + r] += w->bias[r];
}

static void multiply_range(void *context, size_t from, size_t to, size_t worker) {
    (void)worker;
    const struct job *job = context;
    st_linears_between(job->first_row, job->n_linears, from, to, multiply, job);
}

static void run_blocks(struct job *job, size_t n_tokens) {
    const float *x = job->x;
    for (job->column = 0; job->column < n_tokens; job->column += job->n) {
        job->n = st_min(ST_BLOCKS_MAX_COLUMNS, n_tokens - job->column);
        job->x = x + job->column * job->k;
        quantize(job);
        st_pool_run_ranges(job->run->group->pool, multiply_range, job,
                           job->first_row[job->n_linears], MIN_ROWS);
    }
}

static stint_status run(const struct st_run *r, const struct st_operands *o) {
    const struct st_linear_weight *weights[ST_MAX_LINEARS];
    size_t n = st_operands_linears(r, o, weights);
    const float *x = st_float_input(r, o);
    struct job job = {.run = r, .x = x, .k = weights[0]->n_in, .operands = o};
    job.n_chunks = st_blocks_chunks(job.k);
    for (size_t i = 0; i < n; i++) {
        const struct st_linear_weight *w = weights[i];
        if (!st_blocks_has(w->dtype)) {
            struct st_operands one = {.x = x, .n = o->n, .y = {o->y[i]}, .y_row = {o->y_row[i]}};
            st_float_linears(r, &one, &w, 1);
            continue;
        }
        job.place[job.n_linears] = i;
        job.weights[job.n_linears++] = w;
        job.first_row[job.n_linears] = job.first_row[job.n_linears - 1] + w->n_out;
    }
    if (job.n_linears) run_blocks(&job, o->n);
    return STINT_OK;
}

void st_blocks_lay_out(size_t widest, struct st_chunk_buffers *buffers, struct st_arena *arena) {
    buffers->blocks =
        ST_TAKE(arena, struct st_blocks_chunk, ST_BLOCKS_MAX_COLUMNS * st_blocks_chunks(widest));
}

const struct st_op st_op_blocks = {.name = "blocks", .run = run};

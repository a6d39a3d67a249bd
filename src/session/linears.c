// SPDX-License-Identifier: Apache-2.0
// Linears over all cores: the rows of every linear that shares an input are one list of blocks.
#include "session/session.h"

#include "base/size.h"

struct job {
    const struct st_run *run;
    const struct st_linear_path *path;
    const float *x;
    size_t n_tokens, k;
    const struct st_matmul *linears;
    struct st_linear_kernels kernels;
    size_t block_rows[ST_MAX_LINEARS];     // of one item of each linear
    size_t first_item[ST_MAX_LINEARS + 1]; // of each linear
};

static void pack_item(void *context, size_t item, size_t worker) {
    (void)worker;
    const struct job *job = context;
    job->path->pack(&job->kernels, job->x, job->n_tokens, job->k, item, job->run->lane->packed);
}

static void rows_item(void *context, size_t item, size_t worker) {
    const struct job *job = context;
    size_t i = 0;
    while (item >= job->first_item[i + 1]) i++;
    const struct st_matmul *m = &job->linears[i];
    size_t row = (item - job->first_item[i]) * job->block_rows[i];
    struct st_linear_args args = {
        .w = m->weight->data,
        .row_bytes = m->weight->row_bytes,
        .dtype = m->weight->dtype,
        .k = job->k,
        .n_tokens = job->n_tokens,
        .x = job->path->pack ? job->run->lane->packed : job->x,
        .bias = m->weight->bias,
        .y = m->y,
        .y_row = m->y_row,
    };
    job->path->rows(&job->kernels, &args, row, st_min(row + job->block_rows[i], m->weight->n_out),
                    job->run->crew->workers[worker].linear);
}

// The best path that takes all of them. One that is for a single token sums in another order: a
// step of sequences does without it, so that a sequence does not notice when the others leave.
static const struct st_linear_path *choose_path(const struct st_run *r, size_t n_tokens,
                                                const struct st_matmul *linears, size_t n_linears) {
    const struct stint_session *s = r->s;
    if (r->batch && r->batch->places) n_tokens = st_max(2, n_tokens);
    const struct st_linear_path *path = st_linear_paths;
    for (size_t i = 0; i < n_linears;) {
        const struct st_linear_weight *w = linears[i].weight;
        bool fits = st_linear_path_fits(path, s->kernels.cpu_flags, w->dtype, w->n_in, n_tokens);
        i = fits ? i + 1 : 0;
        path += !fits;
    }
    return path;
}

// Prompts take small blocks, whose weights stay in the cache. Decoding streams through the weights,
// the faster the longer a stream goes on, but every thread must get some of them.
static size_t block_rows(const struct st_run *r, size_t n_tokens, size_t n_out) {
    enum { ITEMS_PER_THREAD = 4, LONGEST = 256 };
    size_t share = n_out / (ITEMS_PER_THREAD * st_pool_threads(r->crew->pool));
    if (n_tokens > ST_DECODE_TOKENS) return ST_ROW_BLOCK;
    return st_max(ST_ROW_BLOCK, st_min(LONGEST, share / ST_ROW_BLOCK * ST_ROW_BLOCK));
}

void st_session_linears(const struct st_run *r, const float *x, size_t n_tokens,
                        const struct st_matmul *linears, size_t n_linears) {
    const struct stint_session *s = r->s;
    if (linears[0].weight->nested) { // or the others neither: their input is one linear's
        st_session_nested(r, x, n_tokens, linears, n_linears);
        return;
    }
    // Rows past the batch are scratch: what they give is not used.
    if (r->phase == ST_PHASE_PREFILL) n_tokens = st_max(n_tokens, ST_DECODE_TOKENS + 1);
    struct job job = {.run = r,
                      .path = choose_path(r, n_tokens, linears, n_linears),
                      .x = x,
                      .n_tokens = n_tokens,
                      .k = linears[0].weight->n_in,
                      .linears = linears,
                      .kernels = {s->kernels.tile, s->kernels.expand, s->kernels.gemv}};
    for (size_t i = 0; i < n_linears; i++) {
        size_t n_out = linears[i].weight->n_out;
        job.block_rows[i] = block_rows(r, n_tokens, n_out);
        job.first_item[i + 1] = job.first_item[i] + st_ceil_div(n_out, job.block_rows[i]);
    }
    if (job.path->pack)
        st_pool_run(r->crew->pool, pack_item, &job,
                    st_ceil_div(n_tokens, job.path->block_tokens(&job.kernels)));
    st_pool_run(r->crew->pool, rows_item, &job, job.first_item[n_linears]);
}

void st_session_linear(const struct st_run *r, const float *x, size_t n_tokens,
                       const struct st_linear_weight *weight, float *y) {
    const struct st_matmul linear = {weight, y, weight->n_out};
    st_session_linears(r, x, n_tokens, &linear, 1);
}

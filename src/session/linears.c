// SPDX-License-Identifier: Apache-2.0
// Linears over all cores: the rows of every linear that shares an input are one list of blocks.
#include "session/session.h"

#include "base/size.h"

struct job {
    struct stint_session *s;
    const struct st_linear_path *path;
    const float *x;
    size_t n_tokens, k;
    const struct st_matmul *linears;
    struct st_linear_kernels kernels;
    size_t first_item[ST_MAX_LINEARS + 1]; // of each linear
};

static void pack_item(void *context, size_t item, size_t worker) {
    (void)worker;
    const struct job *job = context;
    job->path->pack(&job->kernels, job->x, job->n_tokens, job->k, item, job->s->packed);
}

static void rows_item(void *context, size_t item, size_t worker) {
    const struct job *job = context;
    size_t i = 0;
    while (item >= job->first_item[i + 1]) i++;
    const struct st_matmul *m = &job->linears[i];
    size_t row = (item - job->first_item[i]) * ST_ROW_BLOCK;
    struct st_linear_args args = {
        .w = m->weight->data,
        .row_bytes = m->weight->row_bytes,
        .dtype = m->weight->dtype,
        .k = job->k,
        .n_tokens = job->n_tokens,
        .x = job->path->pack ? job->s->packed : job->x,
        .bias = m->weight->bias,
        .y = m->y,
        .y_row = m->y_row,
    };
    job->path->rows(&job->kernels, &args, row, st_min(row + ST_ROW_BLOCK, m->weight->n_out),
                    job->s->workers[worker].linear);
}

// The best path that takes all of them.
static const struct st_linear_path *choose_path(const struct stint_session *s, size_t n_tokens,
                                                const struct st_matmul *linears, size_t n_linears) {
    const struct st_linear_path *path = st_linear_paths;
    for (size_t i = 0; i < n_linears;) {
        const struct st_linear_weight *w = linears[i].weight;
        bool fits = st_linear_path_fits(path, s->kernels.cpu_flags, w->dtype, w->n_in, n_tokens);
        i = fits ? i + 1 : 0;
        path += !fits;
    }
    return path;
}

void st_session_linears(struct stint_session *s, const float *x, size_t n_tokens,
                        const struct st_matmul *linears, size_t n_linears) {
    struct job job = {.s = s,
                      .path = choose_path(s, n_tokens, linears, n_linears),
                      .x = x,
                      .n_tokens = n_tokens,
                      .k = linears[0].weight->n_in,
                      .linears = linears,
                      .kernels = {s->kernels.tile, s->kernels.expand, s->kernels.gemv}};
    for (size_t i = 0; i < n_linears; i++)
        job.first_item[i + 1] =
            job.first_item[i] + st_ceil_div(linears[i].weight->n_out, ST_ROW_BLOCK);
    if (job.path->pack)
        st_pool_run(s->pool, pack_item, &job,
                    st_ceil_div(n_tokens, job.path->block_tokens(&job.kernels)));
    st_pool_run(s->pool, rows_item, &job, job.first_item[n_linears]);
}

void st_session_linear(struct stint_session *s, const float *x, size_t n_tokens,
                       const struct st_linear_weight *weight, float *y) {
    const struct st_matmul linear = {weight, y, weight->n_out};
    st_session_linears(s, x, n_tokens, &linear, 1);
}

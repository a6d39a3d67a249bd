// SPDX-License-Identifier: Apache-2.0
// Linears over all cores: the rows of every linear that shares an input are one list of blocks.
#include "session/session.h"

#include "base/size.h"

struct job {
    struct stint_session *s;
    const float *x;
    size_t n_tokens, k;
    const struct st_matmul *linears;
    struct st_linear_kernels kernels;
    size_t first_item[ST_MAX_LINEARS + 1]; // of each linear
};

// One block of tokens into tile order.
static void pack_item(void *context, size_t item, size_t worker) {
    (void)worker;
    const struct job *job = context;
    const struct st_tile *tile = job->kernels.tile;
    size_t width = tile->vectors * tile->lanes, t = item * width;
    st_tile_pack(tile, job->x + t * job->k, job->k, st_min(width, job->n_tokens - t), job->k,
                 job->s->packed + t * job->k);
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
        .x = job->n_tokens > ST_GEMV_MAX_COLUMNS ? job->s->packed : job->x,
        .bias = m->weight->bias,
        .y = m->y,
        .y_row = m->y_row,
    };
    st_linear_rows(&job->kernels, &args, row, st_min(row + ST_ROW_BLOCK, m->weight->n_out),
                   job->s->workers[worker].linear);
}

void st_session_linears(struct stint_session *s, const float *x, size_t n_tokens,
                        const struct st_matmul *linears, size_t n_linears) {
    const struct st_tile *tile = s->kernels.tile;
    struct job job = {.s = s,
                      .x = x,
                      .n_tokens = n_tokens,
                      .k = linears[0].weight->n_in,
                      .linears = linears,
                      .kernels = {tile, s->kernels.expand, s->kernels.gemv}};
    for (size_t i = 0; i < n_linears; i++)
        job.first_item[i + 1] =
            job.first_item[i] + st_ceil_div(linears[i].weight->n_out, ST_ROW_BLOCK);
    if (n_tokens > ST_GEMV_MAX_COLUMNS)
        st_pool_run(s->pool, pack_item, &job, st_ceil_div(n_tokens, tile->vectors * tile->lanes));
    st_pool_run(s->pool, rows_item, &job, job.first_item[n_linears]);
}

void st_session_linear(struct stint_session *s, const float *x, size_t n_tokens,
                       const struct st_linear_weight *weight, float *y) {
    const struct st_matmul linear = {weight, y, weight->n_out};
    st_session_linears(s, x, n_tokens, &linear, 1);
}

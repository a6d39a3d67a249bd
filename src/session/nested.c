// SPDX-License-Identifier: Apache-2.0
// Linears over nested weights at the precision of the moment (PMPD, section 4): the input is
// quantized token by token as it comes, so a result depends neither on the batch nor on threads.
#include "session/session.h"

#include "base/size.h"

enum {
    ITEMS_PER_THREAD = 4,
    MOST_PANELS = 32, // of one item: long streams
    FEWEST_PANELS = 8,
};

struct job {
    const struct st_run *run;
    const float *x;
    size_t k;
    const struct st_matmul *linears;
    struct st_nested_input input;
    size_t item_panels[ST_MAX_LINEARS];    // of one item of each linear
    size_t first_item[ST_MAX_LINEARS + 1]; // of each linear
};

void st_nested_lay_out_lane(const struct stint_session *s, struct st_lane *lane,
                            struct st_arena *arena) {
    size_t blocks = s->chunk_len * st_nested_blocks(st_nested_widest(&s->model->config));
    lane->nested.q = ST_TAKE(arena, int8_t, blocks * ST_NESTED_BLOCK);
    lane->nested.scale = ST_TAKE(arena, float, blocks);
    lane->nested.offsets = ST_TAKE(arena, int32_t, blocks);
}

static void quantize_token(void *context, size_t t, size_t worker) {
    (void)worker;
    struct job *job = context;
    st_nested_quantize(job->x + t * job->k, job->k, t, &job->input);
}

static void add_bias(const struct st_matmul *m, size_t n_tokens, size_t row, size_t row1) {
    const float *bias = m->weight->bias;
    for (size_t t = 0; t < n_tokens && bias; t++)
        for (size_t r = row; r < row1; r++) m->y[t * m->y_row + r] += bias[r];
}

static void rows_item(void *context, size_t item, size_t worker) {
    (void)worker;
    const struct job *job = context;
    size_t i = 0;
    while (item >= job->first_item[i + 1]) i++;
    const struct st_matmul *m = &job->linears[i];
    const struct st_nested_weight *w = m->weight->nested;
    size_t n_panels = st_ceil_div(w->n_out, ST_NESTED_PANEL);
    size_t panel = (item - job->first_item[i]) * job->item_panels[i];
    size_t panel1 = st_min(panel + job->item_panels[i], n_panels);
    job->run->s->kernels.nested->fn(w, job->run->s->bits, &job->input, panel, panel1, m->y,
                                    m->y_row);
    size_t row = panel * ST_NESTED_PANEL, row1 = st_min(panel1 * ST_NESTED_PANEL, w->n_out);
    st_nested_add_outliers(w, job->run->s->bits, job->x, job->input.n_tokens, row, row1, m->y,
                           m->y_row);
    add_bias(m, job->input.n_tokens, row, row1);
}

void st_session_nested(const struct st_run *r, const float *x, size_t n_tokens,
                       const struct st_matmul *linears, size_t n_linears) {
    struct st_pool *pool = r->crew->pool;
    struct job job = {.run = r,
                      .x = x,
                      .k = linears[0].weight->n_in,
                      .linears = linears,
                      .input = r->lane->nested};
    job.input.n_tokens = n_tokens;
    for (size_t i = 0; i < n_linears; i++) {
        size_t n_panels = st_ceil_div(linears[i].weight->n_out, ST_NESTED_PANEL);
        size_t share = n_panels / (ITEMS_PER_THREAD * st_pool_threads(pool));
        job.item_panels[i] = st_max(FEWEST_PANELS, st_min(MOST_PANELS, share));
        job.first_item[i + 1] = job.first_item[i] + st_ceil_div(n_panels, job.item_panels[i]);
    }
    st_pool_run(pool, quantize_token, &job, n_tokens);
    st_pool_run(pool, rows_item, &job, job.first_item[n_linears]);
}

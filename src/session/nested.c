// SPDX-License-Identifier: Apache-2.0
// Linears over nested weights at the precision of the moment (PMPD, section 4): the input is
// quantized token by token as it comes, so a result depends neither on the batch nor on threads.
// Steps of a model whose neurons are stored one by one have finer inputs (session/fine.c): what
// quantizing leaves of a token is quantized once more, and is a token of its own.
#include "session/session.h"

#include "base/size.h"
#include "session/resident.h"

#include <string.h>

enum { FEWEST_PANELS = 8 }; // that a worker takes at a time

struct job {
    const struct st_run *run;
    const float *x;
    size_t k;
    const struct st_matmul *linears;
    size_t n_linears;
    size_t n_tokens, parts; // of the batch; numbers that each input is
    struct st_nested_input input;
    float *out[ST_MAX_LINEARS]; // [input tokens, out_row], where there are parts
    size_t out_row;
    size_t first_panel[ST_MAX_LINEARS + 1]; // of each linear, if they lay one after another
};

void st_nested_lay_out_lane(const struct stint_session *s, struct st_lane *lane,
                            struct st_arena *arena) {
    size_t tokens = st_max(s->chunk_len, ST_FINE_PARTS * ST_DECODE_TOKENS);
    size_t blocks = tokens * st_nested_blocks(st_nested_widest(&s->model->config));
    lane->nested.q = ST_TAKE(arena, int8_t, blocks * ST_NESTED_BLOCK);
    lane->nested.scale = ST_TAKE(arena, float, blocks);
    lane->nested.offsets = ST_TAKE(arena, int32_t, blocks);
}

static void quantize_token(void *context, size_t t, size_t worker) {
    (void)worker;
    struct job *job = context;
    const float *x = job->x + t * job->k;
    const struct st_nested_kernel *kernel = job->run->s->kernels.nested;
    st_nested_quantize(kernel, x, job->k, job->parts * t, &job->input);
    for (size_t part = 1; part < job->parts; part++)
        st_nested_quantize_rest(kernel, x, job->k, job->parts * t, job->parts * t + part,
                                &job->input);
}

static const struct st_nested_weight *weight_of(const struct stint_session *s,
                                                const struct st_matmul *m) {
    const struct st_nested_weight *w = m->weight->nested;
    return s->resident ? &s->resident->kept.weights[w->index] : w;
}

static void add_bias(const struct st_matmul *m, size_t n_tokens, size_t row, size_t row1) {
    const float *bias = m->weight->bias;
    for (size_t t = 0; t < n_tokens && bias; t++)
        for (size_t r = row; r < row1; r++) m->y[t * m->y_row + r] += bias[r];
}

static void join(const struct job *job, const struct st_matmul *m, const float *out, size_t row,
                 size_t row1) {
    for (size_t t = 0; t < job->n_tokens; t++) {
        const float *first = out + job->parts * t * job->out_row, *rest = first + job->out_row;
        for (size_t r = row; r < row1; r++) m->y[t * m->y_row + r] = first[r] + rest[r];
    }
}

// Panels [panel, panel1) of one linear.
static void multiply(const struct job *job, size_t i, size_t panel, size_t panel1) {
    const struct st_matmul *m = &job->linears[i];
    const struct st_nested_weight *w = weight_of(job->run->s, m);
    unsigned bits = job->run->bits;
    size_t row = panel * ST_NESTED_PANEL, row1 = st_min(panel1 * ST_NESTED_PANEL, w->n_out);
    bool whole = job->parts == 1;
    job->run->s->kernels.nested->fn(w, bits, &job->input, panel, panel1, whole ? m->y : job->out[i],
                                    whole ? m->y_row : job->out_row);
    if (!whole) join(job, m, job->out[i], row, row1);
    st_nested_add_outliers(w, bits, job->x, job->n_tokens, row, row1, m->y, m->y_row);
    add_bias(m, job->n_tokens, row, row1);
}

static void multiply_range(void *context, size_t from, size_t to, size_t worker) {
    (void)worker;
    const struct job *job = context;
    for (size_t i = 0; i < job->n_linears; i++) {
        size_t first = job->first_panel[i];
        size_t panel = st_max(from, first), panel1 = st_min(to, job->first_panel[i + 1]);
        if (panel < panel1) multiply(job, i, panel - first, panel1 - first);
    }
}

static void run(const struct st_run *r, size_t parts, const float *x, size_t n_tokens,
                const struct st_matmul *linears, size_t n_linears) {
    struct st_pool *pool = r->crew->pool;
    struct job job = {.run = r,
                      .x = x,
                      .k = linears[0].weight->n_in,
                      .linears = linears,
                      .n_linears = n_linears,
                      .n_tokens = n_tokens,
                      .parts = parts,
                      .input = r->lane->nested,
                      .out_row = r->s->fine.widest_out};
    job.input.n_tokens = job.parts * n_tokens;
    for (size_t i = 0, row = 0; i < n_linears; row += linears[i++].weight->n_out) {
        if (job.parts > 1) job.out[i] = r->s->fine.out + row;
        size_t n_panels = st_ceil_div(linears[i].weight->n_out, ST_NESTED_PANEL);
        job.first_panel[i + 1] = job.first_panel[i] + n_panels;
    }
    st_pool_run(pool, quantize_token, &job, n_tokens);
    st_pool_run_ranges(pool, multiply_range, &job, job.first_panel[n_linears], FEWEST_PANELS);
}

void st_session_nested(const struct st_run *r, const float *x, size_t n_tokens,
                       const struct st_matmul *linears, size_t n_linears) {
    bool fine = r->s->fine.graphs && r->phase == ST_PHASE_DECODE;
    if (!fine) {
        run(r, 1, x, n_tokens, linears, n_linears);
        return;
    }
    // There is room for the parts of a step's tokens; the head may meet a whole chunk.
    struct st_matmul some[ST_MAX_LINEARS];
    memcpy(some, linears, n_linears * sizeof *some);
    for (size_t t = 0, n; t < n_tokens; t += n) {
        n = st_min(n_tokens - t, ST_DECODE_TOKENS);
        run(r, ST_FINE_PARTS, x + t * linears[0].weight->n_in, n, some, n_linears);
        for (size_t i = 0; i < n_linears; i++) some[i].y += n * some[i].y_row;
    }
}

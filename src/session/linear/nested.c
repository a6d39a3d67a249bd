// SPDX-License-Identifier: Apache-2.0
// Linears over nested weights at the precision of the run (PMPD, section 4). Over codes the input
// is quantized token by token as it comes, so a result depends neither on the batch nor on threads.
// From four bits on, what quantizing leaves of a token is quantized once more: 8 bits would cost as
// much as the weights' 4. At 3 and 2 bits the weights lose twenty times as much, and one term is
// faster.
#include "session/linear/op.h"

#include "base/size.h"
#include "session/linear/paths.h"
#include "session/linear/stored_run.h"
#include "session/weights/source.h"

enum { MIN_PANELS = 8 }; // that a worker takes at a time

struct job {
    const struct st_run *run;
    const struct st_operands *operands;
    const struct st_linear_weight *const *weights;
    size_t k, n_linears;
    uint32_t on_device; // bits of the operands whose products a device has computed
    struct st_nested_input input;
    const struct st_rows *rows; // of each linear, those at hand
    // Of each, the panels that are computed now, as far as there are so many.
    size_t from[ST_MAX_LINEARS], to[ST_MAX_LINEARS];
    size_t first_panel[ST_MAX_LINEARS + 1]; // of each, if these lay one after another
};

void st_nested_lay_out(const struct stint_session *s, struct st_chunk_buffers *buffers,
                       struct st_arena *arena) {
    size_t tokens = ST_TWO_TERMS * st_max(s->chunk_len, st_session_step_rows(s));
    size_t blocks = tokens * st_nested_blocks(st_nested_widest(&s->model->config));
    buffers->nested.q = ST_TAKE(arena, int8_t, blocks * ST_NESTED_BLOCK);
    buffers->nested.scale = ST_TAKE(arena, float, blocks);
    buffers->nested.sums = ST_TAKE(arena, int16_t, blocks * ST_NESTED_GROUPS);
}

static void quantize_token(void *context, size_t t, size_t worker) {
    (void)worker;
    struct job *job = context;
    const float *x = job->operands->x + t * job->k;
    const struct st_nested_kernel *kernel = job->run->s->kernels.nested;
    size_t first = job->input.terms * t;
    st_nested_quantize(kernel, x, job->k, first, &job->input);
    if (job->input.terms == ST_TWO_TERMS)
        st_nested_quantize_rest(kernel, x, job->k, first, first + 1, &job->input);
}

static void add_bias(const float *bias, size_t n, size_t row, size_t row1, float *y, size_t y_row) {
    for (size_t t = 0; t < n && bias; t++)
        for (size_t r = row; r < row1; r++) y[t * y_row + r] += bias[r];
}

// Panels [at, at1) behind the first that is computed now, of one linear.
static void multiply(const void *context, size_t i, size_t at, size_t at1) {
    const struct job *job = context;
    size_t panel = job->from[i] + at, panel1 = job->from[i] + at1;
    const struct st_operands *o = job->operands;
    const struct st_rows *rows = &job->rows[i];
    const float *bias = job->weights[i]->bias;
    unsigned bits = job->weights[i]->nested->bits[job->run->bits];
    size_t row = panel * ST_NESTED_PANEL, row1 = st_min(panel1 * ST_NESTED_PANEL, rows->n);
    size_t y_row = o->y_row[i];
    float *y = o->y[i] + rows->first;
    if (!(job->on_device >> i & 1))
        job->run->s->kernels.nested->fn(rows->nested, bits, &job->input, panel, panel1, y, y_row);
    st_nested_add_outliers(rows->nested, bits, o->x, o->n, row, row1, y, y_row);
    add_bias(bias ? bias + rows->first : NULL, o->n, row, row1, y, y_row);
}

static void multiply_range(void *context, size_t from, size_t to, size_t worker) {
    (void)worker;
    const struct job *job = context;
    st_linears_between(job->first_panel, job->n_linears, from, to, multiply, job);
}

static void multiply_rows(void *context, const struct st_rows *rows) {
    struct job *job = context;
    job->rows = rows;
    for (size_t i = 0; i < job->n_linears; i++) {
        size_t to = st_min(job->to[i], st_ceil_div(rows[i].n, ST_NESTED_PANEL));
        job->first_panel[i + 1] = job->first_panel[i] + (to - st_min(job->from[i], to));
    }
    st_pool_run_ranges(job->run->group->pool, multiply_range, job, job->first_panel[job->n_linears],
                       MIN_PANELS);
}

static size_t terms_of(const struct st_run *r, const struct st_linear_weight *const *weights,
                       size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!r->drafts && weights[i]->nested->bits[r->bits] > ST_ONE_TERM_BITS) return ST_TWO_TERMS;
    return 1;
}

// What a device has computed meanwhile gets bias and outliers; if it failed, all of it is computed.
static void end_on_device(struct job *job, struct st_stored_call *call) {
    const struct st_run *r = job->run;
    struct st_rows rows[ST_MAX_LINEARS] = {0};
    bool done = st_stored_end(call);
    for (size_t i = 0; i < job->n_linears; i++) {
        job->to[i] = job->from[i];
        job->from[i] = 0;
        if (job->to[i] == 0) continue;
        const struct st_nested_weight *nested = r->s->source->nested(r, job->weights[i]->nested);
        rows[i] = (struct st_rows){.n = nested->n_out, .nested = nested};
        if (done) job->on_device |= 1u << i;
    }
    multiply_rows(job, rows);
}

static stint_status run_codes(const struct st_run *r, const struct st_operands *o,
                              const struct st_linear_weight *const *weights, size_t n) {
    struct job job = {.run = r,
                      .operands = o,
                      .weights = weights,
                      .k = weights[0]->n_in,
                      .n_linears = n,
                      .input = r->buffers->nested};
    job.input.terms = terms_of(r, weights, n);
    job.input.n_tokens = job.input.terms * o->n;
    st_pool_run(r->group->pool, quantize_token, &job, o->n);
    unsigned bits[ST_MAX_LINEARS];
    const struct st_stored_input input = {
        .form = ST_STORED_NESTED, .nested = &job.input, .n = o->n, .k = job.k, .bits = bits};
    for (size_t i = 0; i < n; i++) {
        bits[i] = weights[i]->nested->bits[r->bits];
        job.to[i] = r->n_rows ? st_ceil_div(r->n_rows, ST_NESTED_PANEL) : SIZE_MAX;
    }
    job.on_device = st_stored_multiply(r, o, 0, weights, n, &input);
    struct st_stored_call call;
    st_stored_begin(r, o, weights, n, &input, &call);
    for (size_t i = 0; i < call.n_linears; i++)
        job.from[call.place[i]] = st_ceil_div(call.rows[i], ST_NESTED_PANEL);
    stint_status status = st_nested_rows_each(r, weights, n, multiply_rows, &job);
    if (call.n_linears) end_on_device(&job, &call);
    return status;
}

// Prompts, where the CPU multiplies numbers of 16 bits faster than codes with inputs in two terms.
// A device that computes them instead takes codes.
static const struct st_linear_path *path_of(const struct st_run *r, size_t k) {
    const struct st_stored *stored = &r->s->stored;
    bool device = stored->device && !stored->shares;
    const struct st_linear_path *path =
        r->nearly_exact && !device ? st_linear_int16_path(r->s->kernels.cpu_flags, k) : NULL;
    if (path) return path;
    bool codes = r->phase == ST_PHASE_DECODE || r->as_steps || k % 2 != 0;
    return codes || device ? NULL : st_linear_nested_path(r->s->kernels.cpu_flags);
}

static stint_status run(const struct st_run *r, const struct st_operands *o) {
    const struct st_linear_weight *weights[ST_MAX_LINEARS];
    size_t n = st_operands_linears(r, o, weights);
    struct st_path_product product = {.run = r,
                                      .path = path_of(r, weights[0]->n_in),
                                      .operands = o,
                                      .x = o->x,
                                      .n_tokens = o->n,
                                      .k = weights[0]->n_in,
                                      .weights = weights,
                                      .n_linears = n,
                                      .selecting = SIZE_MAX};
    if (!product.path) return run_codes(r, o, weights, n);
    st_path_begin(&product);
    return st_nested_rows_each(r, weights, n, st_path_rows, &product);
}

const struct st_op st_op_nested = {.name = "nested", .run = run};

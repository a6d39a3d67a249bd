// SPDX-License-Identifier: Apache-2.0
// Linears over nested weights at the precision of the run (PMPD, section 4): the input is quantized
// token by token as it comes, so a result depends neither on the batch nor on threads. From four
// bits on, what quantizing leaves of a token is quantized once more: 8 bits would cost as much as
// the weights' 4. At 3 and 2 bits the weights lose twenty times as much, and one term is faster.
#include "session/linear/op.h"

#include "base/size.h"
#include "session/weights/source.h"

enum {
    MIN_PANELS = 8,   // that a worker takes at a time
    ONE_TERM_BITS = 3 // weights of at most these bits get inputs in one term
};

struct job {
    const struct st_run *run;
    const struct st_operands *operands;
    size_t k, n_linears;
    const struct st_linear_weight *weights[ST_MAX_LINEARS];
    const struct st_nested_weight *nested[ST_MAX_LINEARS]; // where they are
    struct st_nested_input input;
    size_t first_panel[ST_MAX_LINEARS + 1]; // of each linear, if they lay one after another
};

void st_nested_lay_out(const struct stint_session *s, struct st_chunk_buffers *buffers,
                       struct st_arena *arena) {
    size_t tokens = ST_TWO_TERMS * st_max(s->chunk_len, st_session_step_rows(s));
    size_t blocks = tokens * st_nested_blocks(st_nested_widest(&s->model->config));
    buffers->nested.q = ST_TAKE(arena, int8_t, blocks * ST_NESTED_BLOCK);
    buffers->nested.scale = ST_TAKE(arena, float, blocks);
    buffers->nested.sums = ST_TAKE(arena, int16_t, blocks * ST_NESTED_GROUPS);
}

static unsigned bits_of(const struct job *job, size_t i) {
    return st_nested_bits(&job->run->s->model->nested, job->nested[i], job->run->bits);
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

static void add_bias(const struct job *job, size_t i, size_t row, size_t row1) {
    const struct st_operands *o = job->operands;
    const float *bias = job->weights[i]->bias;
    for (size_t t = 0; t < o->n && bias; t++)
        for (size_t r = row; r < row1; r++) o->y[i][t * o->y_row[i] + r] += bias[r];
}

// Panels [panel, panel1) of one linear.
static void multiply(const void *context, size_t i, size_t panel, size_t panel1) {
    const struct job *job = context;
    const struct st_operands *o = job->operands;
    const struct st_nested_weight *w = job->nested[i];
    unsigned bits = bits_of(job, i);
    size_t row = panel * ST_NESTED_PANEL, row1 = st_min(panel1 * ST_NESTED_PANEL, w->n_out);
    job->run->s->kernels.nested->fn(w, bits, &job->input, panel, panel1, o->y[i], o->y_row[i]);
    st_nested_add_outliers(w, bits, o->x, o->n, row, row1, o->y[i], o->y_row[i]);
    add_bias(job, i, row, row1);
}

static void multiply_range(void *context, size_t from, size_t to, size_t worker) {
    (void)worker;
    const struct job *job = context;
    st_linears_between(job->first_panel, job->n_linears, from, to, multiply, job);
}

static stint_status run(const struct st_run *r, const struct st_operands *o) {
    const struct stint_session *s = r->s;
    struct job job = {.run = r, .operands = o, .input = r->buffers->nested};
    job.n_linears = st_operands_linears(r, o, job.weights);
    job.k = job.weights[0]->n_in;
    job.input.terms = 1;
    for (size_t i = 0; i < job.n_linears; i++) {
        job.nested[i] = s->source->nested(s, job.weights[i]->nested);
        if (bits_of(&job, i) > ONE_TERM_BITS) job.input.terms = ST_TWO_TERMS;
        size_t n_panels = st_ceil_div(job.weights[i]->n_out, ST_NESTED_PANEL);
        job.first_panel[i + 1] = job.first_panel[i] + n_panels;
    }
    job.input.n_tokens = job.input.terms * o->n;
    st_pool_run(r->group->pool, quantize_token, &job, o->n);
    st_pool_run_ranges(r->group->pool, multiply_range, &job, job.first_panel[job.n_linears],
                       MIN_PANELS);
    return STINT_OK;
}

const struct st_op st_op_nested = {.name = "nested", .run = run};

// SPDX-License-Identifier: Apache-2.0
// Linears over float weights, on all cores: the rows of every linear that shares an input are one
// list of blocks.
#include "session/linear/op.h"

#include "base/size.h"
#include "session/linear/rows.h"

struct job {
    const struct st_run *run;
    const struct st_linear_path *path;
    const struct st_operands *operands;
    const float *x;
    size_t n_tokens, k;
    const struct st_linear_weight *const *weights;
    size_t n_linears, selecting; // tokens
    uint32_t on_device;          // bits of the linears whose products a device has computed
    struct st_linear_kernels kernels;
    const struct st_rows *rows;            // of each linear, those at hand
    size_t block_rows[ST_MAX_LINEARS];     // of one item of each linear
    size_t first_item[ST_MAX_LINEARS + 1]; // of each linear
};

static void pack_item(void *context, size_t item, size_t worker) {
    (void)worker;
    const struct job *job = context;
    job->path->pack(&job->kernels, job->x, job->n_tokens, job->k, item, job->run->buffers->packed);
}

static void scale_rows(const struct job *job, const struct st_linear_args *args, float scale,
                       size_t row, size_t end) {
    const struct st_elementwise *k = job->run->s->kernels.elementwise;
    for (size_t t = 0; t < args->n_tokens; t++) {
        float *y = args->y + t * args->y_row + row;
        k->scale(scale, y, end - row, y);
    }
}

// To what a device has computed.
static void add_bias(const struct st_linear_args *args, size_t n, size_t row, size_t end) {
    for (size_t t = 0; t < n && args->bias; t++)
        for (size_t r = row; r < end; r++) args->y[t * args->y_row + r] += args->bias[r];
}

static void rows_item(void *context, size_t item, size_t worker) {
    const struct job *job = context;
    size_t i = 0;
    while (item >= job->first_item[i + 1]) i++;
    const struct st_linear_weight *w = job->weights[i];
    const struct st_rows *rows = &job->rows[i];
    size_t row = (item - job->first_item[i]) * job->block_rows[i];
    size_t end = st_min(row + job->block_rows[i], rows->n);
    struct st_linear_args args = {
        .w = rows->data,
        .row_bytes = w->row_bytes,
        .dtype = w->dtype,
        .k = job->k,
        .n_tokens = job->n_tokens,
        .x = job->path->pack ? job->run->buffers->packed : job->x,
        .bias = w->bias ? w->bias + rows->first : NULL,
        .y = job->operands->y[i] + rows->first,
        .y_row = job->operands->y_row[i],
    };
    if (job->on_device >> i & 1)
        add_bias(&args, job->operands->n, row, end);
    else
        job->path->rows(&job->kernels, &args, row, end, job->run->group->workers[worker].linear);
    if (w->scale != 0.0f) scale_rows(job, &args, w->scale, row, end);
}

// The number of tokens that a path is selected for. A step of sequences has the same path whatever
// their number, so that a sequence does not notice when others come or leave: not the one for a
// single token, which sums in another order, nor those for many tokens.
static size_t selecting_tokens(const struct st_run *r, size_t n_tokens) {
    return r->batch && r->batch->places ? 2 : n_tokens;
}

// Prompts of quantized blocks, unless they are to be exact, may be rounded.
static bool may_round(const struct st_run *r) {
    return r->phase == ST_PHASE_PREFILL && r->s->model->fast;
}

// The best path that takes all of them.
static const struct st_linear_path *select_path(const struct st_run *r, size_t n_tokens,
                                                const struct st_linear_weight *const *weights,
                                                size_t n_linears) {
    const struct stint_session *s = r->s;
    const struct st_linear_path *path = st_linear_paths;
    for (size_t i = 0; i < n_linears;) {
        const struct st_linear_weight *w = weights[i];
        bool fits = st_linear_path_fits(path, s->kernels.cpu_flags, may_round(r), w->dtype, w->n_in,
                                        n_tokens);
        i = fits ? i + 1 : 0;
        path += !fits;
    }
    return path;
}

// Of a prompt: as many rows as one call takes, or down to more than half of them where that leaves
// threads waiting for the last one for a shorter time. Only whole tiles: with those of AMX, which
// have 32 rows, as many as one call takes.
static size_t even_rows(const struct st_linear_kernels *k, size_t n_threads, size_t n_out) {
    size_t most = st_linear_whole_rows(k->tile), best = most, least_time = SIZE_MAX;
    size_t m = k->pairs ? k->pairs->m : k->tile->m;
    for (size_t rows = most; rows > most / 2; rows--) {
        size_t time = st_ceil_div(st_ceil_div(n_out, rows), n_threads) * rows;
        bool is_whole = rows % m == 0 && rows % k->tile->lanes == 0; // lanes: sums are transposed
        if (time < least_time && is_whole) {
            least_time = time;
            best = rows;
        }
    }
    return best;
}

// Prompts take small blocks, whose weights stay in the cache. Decoding streams through the weights,
// the faster the longer a stream goes on, but every thread must get some of them.
static size_t block_rows(const struct job *job, size_t n_out) {
    enum { ITEMS_PER_THREAD = 4, LONGEST = 256 };
    size_t n_threads = st_pool_threads(job->run->group->pool);
    if (job->selecting > ST_LINEAR_FEW_TOKENS) return even_rows(&job->kernels, n_threads, n_out);
    size_t share = n_out / (ITEMS_PER_THREAD * n_threads);
    return st_max(ST_ROW_BLOCK, st_min(LONGEST, share / ST_ROW_BLOCK * ST_ROW_BLOCK));
}

static void run_rows(void *context, const struct st_rows *rows) {
    struct job *job = context;
    job->rows = rows;
    for (size_t i = 0; i < job->n_linears; i++) {
        job->block_rows[i] = block_rows(job, rows[i].n);
        job->first_item[i + 1] = job->first_item[i] + st_ceil_div(rows[i].n, job->block_rows[i]);
    }
    st_pool_run(job->run->group->pool, rows_item, job, job->first_item[job->n_linears]);
}

static uint32_t run_on_device(const struct job *job) {
    const struct st_stored_input input = {
        .form = ST_STORED_FLOATS, .x = job->x, .n = job->operands->n, .k = job->k};
    return st_stored_multiply(job->run, job->operands, 0, job->weights, job->n_linears, &input);
}

stint_status st_float_linears(const struct st_run *r, const struct st_operands *o,
                              const struct st_linear_weight *const *weights, size_t n_linears) {
    const struct stint_session *s = r->s;
    // A prompt's chunk, however short, does without the path for few tokens. Rows past the batch
    // are scratch: what they give is not used.
    bool prompt = r->phase == ST_PHASE_PREFILL;
    size_t n_tokens = prompt ? st_max(o->n, ST_LINEAR_FEW_TOKENS + 1) : o->n;
    size_t selecting = selecting_tokens(r, n_tokens);
    struct job job = {.run = r,
                      .path = select_path(r, selecting, weights, n_linears),
                      .operands = o,
                      .x = o->x,
                      .n_tokens = n_tokens,
                      .k = weights[0]->n_in,
                      .weights = weights,
                      .n_linears = n_linears,
                      .selecting = selecting,
                      .kernels = {s->kernels.tile, s->kernels.dequantize, s->kernels.gemv,
                                  st_pairs_select(s->kernels.cpu_flags),
                                  st_dequantize_bf16_select(s->kernels.cpu_flags),
                                  st_int16_select(s->kernels.cpu_flags)}};
    job.on_device = run_on_device(&job);
    if (job.path->pack && job.on_device != (1u << n_linears) - 1)
        st_pool_run(r->group->pool, pack_item, &job,
                    st_ceil_div(n_tokens, job.path->block_tokens(&job.kernels)));
    return st_rows_each(r, weights, n_linears, run_rows, &job);
}

// Of the model. Weights of a method that is only compared may be wider.
static size_t input_width(const struct st_config *c, enum st_int8_role role, uint32_t layer,
                          uint32_t block) {
    const size_t widths[ST_INT8_ROLES] = {c->hidden, st_config_mixer(c, layer).out, c->hidden,
                                          st_config_ffn(c, layer, block), c->embed};
    return widths[role];
}

const float *st_float_input(const struct st_run *r, const struct st_operands *o) {
    struct st_linear_input input = {r->layer,
                                    o->expert,
                                    o->role,
                                    o->x,
                                    o->n,
                                    input_width(&r->s->model->config, o->role,
                                                o->role == ST_INT8_HEAD ? 0 : r->layer, o->expert)};
    return st_session_observe(r->s, &input);
}

static stint_status run(const struct st_run *r, const struct st_operands *o) {
    const struct st_linear_weight *weights[ST_MAX_LINEARS];
    size_t n = st_operands_linears(r, o, weights);
    struct st_operands seen = *o;
    seen.x = st_float_input(r, o);
    return st_float_linears(r, &seen, weights, n);
}

const struct st_op st_op_float = {.name = "float", .run = run};

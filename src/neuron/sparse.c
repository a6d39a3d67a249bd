// SPDX-License-Identifier: Apache-2.0
#include "neuron/sparse.h"

#include "kernels/prefetch.h"

#include <string.h>

enum { CLUSTER = 16 }; // neurons of an item

void st_sparse_lay_out(struct st_sparse *s, struct st_arena *arena) {
    size_t k = s->layout.k, rows = ST_SPARSE_ROWS;
    s->x = ST_TAKE(arena, uint8_t, rows * k);
    s->sums = ST_TAKE(arena, int32_t, s->n_threads * rows * k);
    s->q_sums = ST_TAKE(arena, int32_t, s->n_threads * rows);
    s->total = ST_TAKE(arena, int32_t, rows * k);
}

void st_sparse_begin(struct st_sparse *s, const uint8_t *x, size_t x_row, uint8_t zero,
                     size_t n_tokens) {
    size_t k = s->layout.k;
    uint8_t change = zero ^ s->kernel->zero; // 0, or 128: the sign bit
    s->n_tokens = n_tokens;
    s->n_others = 0;
    for (size_t row = 0; row < ST_TWO_TERMS * n_tokens; row++)
        for (size_t i = 0; i < k; i++)
            s->x[row * k + i] = i < s->layout.width ? x[row * x_row + i] ^ change : 0;
    st_sparse_clear(s);
}

void st_sparse_clear(struct st_sparse *s) {
    memset(s->sums, 0, s->n_threads * ST_SPARSE_ROWS * s->layout.k * sizeof *s->sums);
    memset(s->q_sums, 0, s->n_threads * ST_SPARSE_ROWS * sizeof *s->q_sums);
}

void st_sparse_share(struct st_sparse *s, const struct st_sparse *begun) {
    struct st_sparse own = *s;
    *s = *begun;
    s->n_threads = own.n_threads;
    s->sums = own.sums;
    s->q_sums = own.q_sums;
    s->total = own.total;
    s->n_others = 0;
}

// Of a cluster on its way.
struct cluster {
    const struct st_sparse *s;
    const struct st_neuron_ref *refs;
    size_t n, n_rows;
    int32_t sums[CLUSTER][2 * ST_SPARSE_ROWS]; // [token, part, row]
    int8_t q[CLUSTER][ST_SPARSE_ROWS];         // [token, part]
};

size_t st_sparse_packed_row(const struct st_linear_op *up, uint32_t neuron, size_t row) {
    if (up->epilogue != ST_EPILOGUE_GATED) return neuron;
    return neuron / ST_GATED_GROUP * ST_DEVICE_GROUP + neuron % ST_GATED_GROUP +
           row * ST_GATED_GROUP;
}

// One row of all neurons for one token, as floats.
static void to_floats(const struct cluster *c, size_t token, size_t row, float *y) {
    const struct st_sparse *s = c->s;
    const struct st_int8_weight *w = &s->up->weight;
    int32_t sums[ST_TWO_TERMS][CLUSTER], row_sums[CLUSTER];
    float factor[CLUSTER], bias[CLUSTER];
    for (size_t i = 0; i < c->n; i++) {
        size_t packed = st_sparse_packed_row(s->up, c->refs[i].neuron, row);
        for (size_t part = 0; part < ST_TWO_TERMS; part++)
            sums[part][i] = c->sums[i][(token * ST_TWO_TERMS + part) * c->n_rows + row];
        row_sums[i] = w->row_sums[packed];
        factor[i] = w->factor[packed];
        bias[i] = w->bias ? w->bias[packed] : 0.0f;
    }
    s->elementwise->dequantize_two(sums[0], sums[1], row_sums, s->kernel->zero, w->n_in, 1.0f,
                                   factor, w->bias ? bias : NULL, c->n, y);
    if (!s->add || s->add_row[token] < 0) return;
    const float *add = s->add + (size_t)s->add_row[token] * w->n_panels * ST_INT8_PANEL;
    for (size_t i = 0; i < c->n; i++)
        y[i] += add[st_sparse_packed_row(s->up, c->refs[i].neuron, row)];
}

// Activates and quantizes a token's neurons.
static void activate(struct cluster *c, size_t token) {
    const struct st_sparse *s = c->s;
    float rows[2][CLUSTER];
    uint8_t q[CLUSTER], rest[CLUSTER];
    for (size_t row = 0; row < c->n_rows; row++) to_floats(c, token, row, rows[row]);
    if (c->n_rows == 2)
        s->elementwise->act_gated(s->up->act, rows[0], rows[1], c->n, rows[0]);
    else
        s->elementwise->act(s->up->act, rows[0], c->n, rows[0]);
    float scale = s->down->weight.input_scale;
    size_t clipped = s->elementwise->quantize_two(rows[0], c->n, scale, 0, q, rest);
    for (size_t i = 0; i < c->n && clipped && s->outliers; i++)
        st_outliers_collect(s->outliers, &rows[0][i], 1, scale, (uint32_t)(s->first_token + token),
                            c->refs[i].neuron, 0, &q[i]);
    if (clipped) atomic_fetch_add_explicit(s->clipped, clipped, memory_order_relaxed);
    for (size_t i = 0; i < c->n; i++) {
        c->q[i][token * ST_TWO_TERMS] = (int8_t)q[i];
        c->q[i][token * ST_TWO_TERMS + 1] = (int8_t)rest[i];
    }
}

static bool is_active(const struct cluster *c, size_t i) {
    int any = 0;
    for (size_t r = 0; r < ST_TWO_TERMS * c->s->n_tokens; r++) any |= c->q[i][r];
    return any != 0;
}

// Adds the columns of up to ST_NEURON_GROUP active neurons.
static void add_group(const struct cluster *c, const size_t *which, size_t n, size_t worker) {
    const struct st_sparse *s = c->s;
    const uint8_t *columns[ST_NEURON_GROUP];
    int8_t q[ST_SPARSE_ROWS * ST_NEURON_GROUP] = {0};
    size_t k = s->layout.k, n_rows = ST_TWO_TERMS * s->n_tokens;
    int32_t *sums = s->sums + worker * ST_SPARSE_ROWS * k;
    for (size_t j = 0; j < ST_NEURON_GROUP; j++) {
        size_t i = which[j < n ? j : 0];
        columns[j] = c->refs[i].bundle + c->n_rows * s->layout.row_bytes;
        for (size_t row = 0; row < n_rows && j < n; row++) {
            q[row * ST_NEURON_GROUP + j] = c->q[i][row];
            s->q_sums[worker * ST_SPARSE_ROWS + row] += c->q[i][row];
        }
    }
    for (size_t row = 0; row < n_rows; row += ST_NEURON_TOKENS)
        s->kernel->add[s->layout.code](columns, q + row * ST_NEURON_GROUP,
                                       st_min(ST_NEURON_TOKENS, n_rows - row), k, sums + row * k,
                                       k);
}

static void multiply(struct cluster *c) {
    const struct st_sparse *s = c->s;
    size_t k = s->layout.k, n_rows = ST_TWO_TERMS * s->n_tokens;
    for (size_t i = 0; i < c->n; i++) {
        if (i + 1 < c->n) st_prefetch_soon(c->refs[i + 1].bundle, c->n_rows * s->layout.row_bytes);
        for (size_t row = 0; row < n_rows; row += ST_NEURON_TOKENS)
            s->kernel->dot[s->layout.code](c->refs[i].bundle, c->n_rows, k, s->x + row * k, k,
                                           st_min(ST_NEURON_TOKENS, n_rows - row),
                                           c->sums[i] + row * c->n_rows);
    }
}

static void run_cluster(void *context, size_t item, size_t worker) {
    const struct st_sparse *s = context;
    size_t which[ST_NEURON_GROUP], n = 0;
    struct cluster c = {.s = s,
                        .refs = s->refs + item * CLUSTER,
                        .n = st_min(CLUSTER, s->n_refs - item * CLUSTER),
                        .n_rows = s->layout.parts - 1};
    multiply(&c);
    for (size_t t = 0; t < s->n_tokens; t++) activate(&c, t);
    for (size_t i = 0; i < c.n; i++) {
        if (!is_active(&c, i)) continue;
        st_prefetch_soon(c.refs[i].bundle + c.n_rows * s->layout.row_bytes, s->layout.row_bytes);
        which[n++] = i;
        if (n < ST_NEURON_GROUP) continue;
        add_group(&c, which, n, worker);
        n = 0;
    }
    if (n) add_group(&c, which, n, worker);
}

void st_sparse_add(struct st_sparse *s, struct st_pool *pool, const struct st_neuron_ref *refs,
                   size_t n_refs) {
    s->refs = refs;
    s->n_refs = n_refs;
    if (n_refs) st_pool_run(pool, run_cluster, s, st_ceil_div(n_refs, CLUSTER));
}

struct ending {
    struct st_sparse *s;
    float *y;
    size_t y_row;
};

// The sums of all threads, [k].
static void join_sums(const struct st_sparse *s, size_t row, int32_t *total) {
    size_t k = s->layout.k;
    int32_t q_sum = 0;
    for (size_t i = 0; i < s->n_threads; i++) q_sum += s->q_sums[i * ST_SPARSE_ROWS + row];
    st_neuron_finish(s->kernel, s->sums + row * k, ST_SPARSE_ROWS * k, s->n_threads, k, q_sum,
                     total);
}

// Rows of k, the next of which begins where the outputs of one end.
const int32_t *st_sparse_sums(struct st_sparse *s) {
    for (size_t row = 0; row < ST_TWO_TERMS * s->n_tokens; row++)
        join_sums(s, row, s->total + row * s->down->rows[0]);
    return s->total;
}

// A row's sums of `down`.
static void end_row(const struct st_sparse *s, size_t row) {
    size_t k = s->layout.k;
    join_sums(s, row, s->total + row * k);
    for (size_t i = 0; i < s->n_others; i++)
        for (size_t n = 0; n < s->down->rows[0]; n++)
            s->total[row * k + n] += s->others[i][row * s->down->rows[0] + n];
}

static void end_token(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct ending *e = context;
    const struct st_sparse *s = e->s;
    size_t k = s->layout.k, row = t * ST_TWO_TERMS;
    end_row(s, row);
    end_row(s, row + 1);
    const struct st_int8_weight *w = &s->down->weight;
    s->elementwise->dequantize_two(s->total + row * k, s->total + (row + 1) * k, w->row_sums, 0,
                                   w->n_in, 1.0f, w->factor, w->bias, s->down->rows[0],
                                   e->y + t * e->y_row);
}

void st_sparse_end(struct st_sparse *s, struct st_pool *pool, float *y, size_t y_row) {
    struct ending ending = {s, y, y_row};
    st_pool_run(pool, end_token, &ending, s->n_tokens);
}

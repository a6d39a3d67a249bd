// SPDX-License-Identifier: Apache-2.0
#include "support/device_cases.h"
#include "support/support.h"

#include "base/cpu.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void *take(size_t n, size_t bytes) {
    size_t rounded = st_round_up(n * bytes + 1, 64);
    void *memory = aligned_alloc(64, rounded);
    assert_non_null(memory);
    memset(memory, 0, rounded);
    return memory;
}

// ---- Linears

static size_t all_rows(const struct st_linear_op *s) {
    size_t n = 0;
    for (uint32_t i = 0; i < s->n_parts; i++) n += s->rows[i];
    return s->epilogue == ST_EPILOGUE_GATED ? 2 * n : n;
}

// Where row `row` of the formulas lies in the packed layout.
static size_t packed_row(const struct st_linear_op *s, size_t row) {
    if (s->epilogue == ST_EPILOGUE_GATED) {
        size_t up = row >= s->rows[0], i = row - up * s->rows[0];
        return i / ST_GATED_GROUP * ST_DEVICE_GROUP + up * ST_GATED_GROUP + i % ST_GATED_GROUP;
    }
    size_t start = 0;
    for (uint32_t i = 0; row >= s->rows[i]; i++) {
        row -= s->rows[i];
        start += st_round_up(s->rows[i], ST_INT8_PANEL);
    }
    return start + row;
}

static void pack(struct ts_linear *l) {
    struct st_linear_op *s = &l->linear_op;
    struct st_int8_weight *w = &s->weight;
    size_t packed = st_linear_op_packed_rows(s->epilogue, s->n_parts, s->rows), k = w->n_in;
    int8_t *rows = take(packed, k);
    l->panels = take(packed / ST_INT8_PANEL, st_int8_panel_bytes(k));
    l->row_sums = take(packed, sizeof(int32_t));
    l->factor = take(packed, sizeof(float));
    l->packed_bias = take(packed, sizeof(float));
    for (size_t r = 0; r < packed; r++) l->factor[r] = 1.0f;
    for (size_t r = 0; r < all_rows(s); r++) {
        size_t at = packed_row(s, r);
        memcpy(rows + at * k, l->w + r * k, k);
        l->factor[at] = (st_int8_row_scales(w) ? 1.0f : w->input_scale) * l->scale[r];
        l->packed_bias[at] = l->bias[r];
    }
    for (size_t r = 0; r < packed; r += ST_INT8_PANEL)
        st_int8_pack_panel(rows + r * k, ST_INT8_PANEL, k,
                           l->panels + r / ST_INT8_PANEL * st_int8_panel_bytes(k), l->row_sums + r);
    free(rows);
    w->n_panels = (uint32_t)(packed / ST_INT8_PANEL);
    w->panels = l->panels;
    w->row_sums = l->row_sums;
    w->factor = l->factor;
}

struct ts_linear ts_linear_make(enum st_epilogue epilogue, uint32_t n_parts, const uint32_t *rows,
                                uint32_t n_in, enum st_act act, bool bias, float input_scale) {
    struct ts_linear l = {.linear_op = {.epilogue = epilogue, .act = act, .n_parts = n_parts}};
    memcpy(l.linear_op.rows, rows, n_parts * sizeof *rows);
    size_t n = all_rows(&l.linear_op);
    l.w = take(n, n_in);
    l.scale = take(n, sizeof(float));
    l.bias = take(n, sizeof(float));
    for (size_t i = 0; i < n * n_in; i++) l.w[i] = (int8_t)((int)ts_random_below(255) - 127);
    for (size_t i = 0; i < n; i++) l.scale[i] = ts_random_float(1e-3f, 2e-3f);
    for (size_t i = 0; i < n && bias; i++) l.bias[i] = ts_random_float(-1.0f, 1.0f);
    l.linear_op.weight.input_scale = input_scale;
    l.linear_op.weight.n_in = n_in;
    pack(&l);
    l.linear_op.weight.bias = bias ? l.packed_bias : NULL;
    return l;
}

void ts_linear_drop(struct ts_linear *l) {
    free(l->w);
    free(l->scale);
    free(l->bias);
    free(l->panels);
    free(l->row_sums);
    free(l->factor);
    free(l->packed_bias);
}

// ---- Cases

struct ts_case ts_case_make(const struct ts_case_options *o) {
    struct ts_case c = {.n_rows = o->n_rows, .list_in = o->lists, .list_middle = o->lists};
    float scale = ts_random_float(0.01f, 0.02f);
    uint32_t last = o->n_middle ? 1 : 0;
    if (last)
        c.linears[0] = ts_linear_make(o->epilogue, 1, &o->n_middle, o->n_in, o->act, o->bias,
                                      o->row_scales[0] ? 0.0f : scale);
    // A scale of the middle that some elements exceed.
    c.linears[last] = ts_linear_make(ST_EPILOGUE_FLOAT, o->n_parts, o->rows,
                                     last ? o->n_middle : o->n_in, o->act, o->bias,
                                     o->row_scales[last] ? 0.0f
                                     : last              ? 0.004f
                                                         : scale);
    c.subgraph = (struct st_device_subgraph){.n_linear_ops = last + 1,
                                             .two_term = {o->two_term, o->two_term}};
    for (uint32_t i = 0; i <= last; i++) c.subgraph.linear_ops[i] = c.linears[i].linear_op;
    c.x = take(o->n_rows * o->n_in, sizeof(float));
    for (size_t i = 0; i < o->n_rows * o->n_in; i++) {
        c.x[i] = scale * ts_random_float(-126.0f, 126.0f);
        if (ts_random_below(50) == 0) c.x[i] *= 3.0f;
        if (ts_random_below(20) == 0) c.x[i] = scale * ((float)ts_random_below(200) - 99.5f);
    }
    if (!o->add || !last) return c;
    size_t packed = st_linear_op_rows(&c.linears[0].linear_op), n = 0;
    c.add = take(o->n_rows * packed, sizeof(float));
    c.add_row = take(o->n_rows, sizeof(int32_t));
    for (size_t i = 0; i < o->n_rows * packed; i++) c.add[i] = ts_random_float(-1.0f, 1.0f);
    for (size_t t = 0; t < o->n_rows; t++) c.add_row[t] = ts_random_below(2) ? (int32_t)n++ : -1;
    return c;
}

struct ts_case ts_case_random(bool row_scales) {
    struct ts_case_options o = {.n_rows = 1 + ts_random_below(40),
                                .n_in = 1 + (uint32_t)ts_random_below(200),
                                .n_parts = 1,
                                .act = ts_random_below(2) ? ST_ACT_RELU : ST_ACT_DRELU,
                                .bias = ts_random_below(2),
                                .two_term = ts_random_below(2),
                                .add = ts_random_below(2),
                                .lists = ts_random_below(2)};
    for (int i = 0; i < 2; i++) o.row_scales[i] = row_scales && ts_random_below(2);
    if (o.row_scales[0] || o.row_scales[1]) o.lists = false;
    for (int i = 0; i < ST_LINEAR_OP_PARTS; i++) o.rows[i] = 1 + (uint32_t)ts_random_below(150);
    if (ts_random_below(2)) {
        o.n_middle = 1 + (uint32_t)ts_random_below(200);
        o.epilogue = ts_random_below(2) ? ST_EPILOGUE_GATED : ST_EPILOGUE_ACT;
    } else {
        o.n_parts = 1 + (uint32_t)ts_random_below(ST_LINEAR_OP_PARTS);
    }
    return ts_case_make(&o);
}

struct ts_case ts_case_small(void) {
    return ts_case_make(&(struct ts_case_options){.n_rows = 5,
                                                  .n_in = 70,
                                                  .n_middle = 90,
                                                  .n_parts = 1,
                                                  .rows = {33},
                                                  .epilogue = ST_EPILOGUE_GATED,
                                                  .act = ST_ACT_RELU,
                                                  .lists = true,
                                                  .add = true});
}

void ts_case_drop(struct ts_case *c) {
    for (uint32_t i = 0; i < c->subgraph.n_linear_ops; i++) ts_linear_drop(&c->linears[i]);
    free(c->x);
    free(c->add);
    free(c->add_row);
}

// ---- The formulas

// An input of a linear in up to two terms, with what was beyond them.
struct input {
    float *scales;    // [n_rows] of rows with scales of their own; or NULL
    int8_t *q, *rest; // rest NULL: one term
    size_t n_clipped;
    struct st_outlier *outliers; // or NULL
};

static int8_t nearest(float steps) {
    return (int8_t)fmaxf(-127.0f, fminf(127.0f, rintf(steps)));
}

static float own_scale(const float *x, size_t n) {
    float max = 0.0f;
    for (size_t i = 0; i < n; i++) max = fmaxf(max, fabsf(x[i]));
    return max >= 0x1p-100f ? max / 127.0f : 1.0f;
}

static struct input quantize(const float *x, size_t n_rows, size_t n, float scale, bool two_term,
                             bool list) {
    bool own = scale <= 0.0f;
    struct input in = {.q = take(n_rows, n),
                       .scales = own ? take(n_rows, sizeof(float)) : NULL,
                       .rest = two_term ? take(n_rows, n) : NULL,
                       .outliers = list ? take(n_rows * n, sizeof(struct st_outlier)) : NULL};
    for (size_t i = 0; i < n_rows * n; i++) {
        if (own && i % n == 0) scale = in.scales[i / n] = own_scale(x + i, n);
        in.q[i] = nearest(x[i] * (1.0f / scale));
        if (fabsf(x[i]) > 127.0f * scale) {
            if (own) continue; // by rounding alone
            if (list) {
                in.outliers[in.n_clipped] =
                    (struct st_outlier){(uint32_t)(i / n), (uint32_t)(i % n), x[i]};
                in.q[i] = 0;
            }
            in.n_clipped++;
        } else if (two_term) {
            float left = x[i] - scale * (float)in.q[i];
            in.rest[i] = nearest(left * (254.0f * (1.0f / scale)));
        }
    }
    return in;
}

static void drop_input(struct input *in) {
    free(in->q);
    free(in->rest);
    free(in->scales);
}

static int32_t dot(const int8_t *x, const int8_t *w, size_t n) {
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * w[i];
    return sum;
}

// y[row] of row t, in the order of operations that docs/NUMERICS.md gives.
static float product(const struct ts_linear *l, const struct input *in, size_t t, size_t row) {
    size_t n = l->linear_op.weight.n_in;
    const int8_t *w = l->w + row * n;
    float own = in->scales ? in->scales[t] : 1.0f;
    float factor = in->scales ? l->scale[row] : l->linear_op.weight.input_scale * l->scale[row];
    int64_t sum = dot(in->q + t * n, w, n);
    float y = (float)sum * (own * factor);
    if (in->rest) y = (float)(254 * sum + dot(in->rest + t * n, w, n)) * (own / 254.0f * factor);
    return l->linear_op.weight.bias ? y + l->bias[row] : y;
}

static float act(enum st_act kind, float x) {
    return kind == ST_ACT_SILU ? x / (1.0f + expf(-x)) : fmaxf(x, 0.0f);
}

static float first_linear(const struct ts_case *c, const struct input *in, size_t t, size_t row) {
    const struct st_linear_op *s = &c->linears[0].linear_op;
    float y = product(&c->linears[0], in, t, row);
    if (c->add && c->add_row[t] >= 0)
        y += c->add[(size_t)c->add_row[t] * st_linear_op_rows(s) + packed_row(s, row)];
    return y;
}

static float *middle_floats(const struct ts_case *c, const struct input *in) {
    const struct st_linear_op *s = &c->linears[0].linear_op;
    size_t n = s->rows[0];
    float *y = take(c->n_rows * n, sizeof *y);
    for (size_t t = 0; t < c->n_rows; t++)
        for (size_t i = 0; i < n; i++) {
            float value = act(s->act, first_linear(c, in, t, i));
            if (s->epilogue == ST_EPILOGUE_GATED) {
                float up = first_linear(c, in, t, n + i);
                value *= s->act == ST_ACT_DRELU ? fmaxf(up, 0.0f) : up;
            }
            y[t * n + i] = value;
        }
    return y;
}

static void norm_rows(const struct st_linear_op *s, size_t n_rows, float *x) {
    const struct st_elementwise *k = st_elementwise_select(st_cpu_flags());
    size_t n = s->weight.n_in;
    for (size_t t = 0; t < n_rows && s->norm; t++)
        k->rmsnorm(x + t * n, s->norm, s->norm_epsilon, n, x + t * n);
}

struct ts_result ts_case_expect(const struct ts_case *c) {
    const struct st_device_subgraph *s = &c->subgraph;
    struct ts_result result = {0};
    struct input in = quantize(c->x, c->n_rows, s->linear_ops[0].weight.n_in,
                               s->linear_ops[0].weight.input_scale, s->two_term[0], c->list_in);
    result.clipped_in = in.n_clipped;
    result.in = in.outliers;
    if (s->n_linear_ops == 2) {
        float *middle = middle_floats(c, &in);
        norm_rows(&s->linear_ops[1], c->n_rows, middle);
        drop_input(&in);
        in = quantize(middle, c->n_rows, s->linear_ops[1].weight.n_in,
                      s->linear_ops[1].weight.input_scale, s->two_term[1], c->list_middle);
        result.clipped_middle = in.n_clipped;
        result.middle = in.outliers;
        free(middle);
    }
    const struct ts_linear *last = &c->linears[s->n_linear_ops - 1];
    for (size_t p = 0, row = 0; p < last->linear_op.n_parts; row += last->linear_op.rows[p++]) {
        size_t n = last->linear_op.rows[p];
        result.out[p] = take(c->n_rows * n, sizeof(float));
        for (size_t t = 0; t < c->n_rows; t++)
            for (size_t i = 0; i < n; i++)
                result.out[p][t * n + i] = product(last, &in, t, row + i);
    }
    drop_input(&in);
    return result;
}

void ts_result_drop(const struct ts_case *c, struct ts_result *r) {
    const struct st_linear_op *last = &c->subgraph.linear_ops[c->subgraph.n_linear_ops - 1];
    for (uint32_t p = 0; p < last->n_parts; p++) free(r->out[p]);
    free(r->in);
    free(r->middle);
}

static void compare_lists(size_t n_a, const struct st_outlier *a, size_t n_b,
                          const struct st_outlier *b, const char *what) {
    if (n_a != n_b) fail_msg("%s: %zu outliers, not %zu", what, n_a, n_b);
    if (!a || !b) return;
    for (size_t i = 0; i < n_a; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0) fail_msg("%s: outlier %zu differs", what, i);
}

void ts_result_compare(const struct ts_case *c, const struct ts_result *a,
                       const struct ts_result *b, const char *what) {
    const struct st_linear_op *last = &c->subgraph.linear_ops[c->subgraph.n_linear_ops - 1];
    compare_lists(a->clipped_in, a->in, b->clipped_in, b->in, what);
    compare_lists(a->clipped_middle, a->middle, b->clipped_middle, b->middle, what);
    for (uint32_t p = 0; p < last->n_parts; p++)
        for (size_t i = 0; i < c->n_rows * last->rows[p]; i++)
            if (memcmp(&a->out[p][i], &b->out[p][i], sizeof(float)) != 0)
                fail_msg("%s: %zu rows, part %u, row %zu, output %zu: %.9g and %.9g", what,
                         c->n_rows, p, i / last->rows[p], i % last->rows[p], (double)a->out[p][i],
                         (double)b->out[p][i]);
}

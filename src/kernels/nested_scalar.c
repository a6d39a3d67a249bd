// SPDX-License-Identifier: Apache-2.0
// The definition: one weight after the other.
#define QUANTIZE st_nested_quantize_plain
#define REST     st_nested_rest_plain
#include "kernels/nested_quantize.h"

// Of one group: its codes times its scale, and its minimum times the sum of q.
struct products {
    int32_t codes, minima;
};

static void add_group(const struct st_nested_weight *w, unsigned bits, size_t row, size_t column,
                      const int8_t *q, struct products *sum) {
    struct st_nested_group group = st_nested_group(w->groups[bits], w->n_in, row, column);
    size_t n = st_min(ST_NESTED_GROUP, w->n_in - column);
    int32_t codes = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        codes += (int32_t)st_nested_code(w, row, column + i, bits) * q[i];
        all += q[i];
    }
    sum->codes += group.scale * codes;
    sum->minima += group.minimum * all;
}

static struct products block_sum(const struct st_nested_weight *w, unsigned bits, size_t row,
                                 size_t block, const int8_t *q) {
    struct products sum = {0, 0};
    for (size_t i = 0; i < ST_NESTED_BLOCK; i += ST_NESTED_GROUP) {
        size_t column = block * ST_NESTED_BLOCK + i;
        if (column < w->n_in) add_group(w, bits, row, column, q + i, &sum);
    }
    return sum;
}

static float row_sum(const struct st_nested_weight *w, unsigned bits, size_t row,
                     const struct st_nested_input *x, size_t t) {
    const struct st_nested_row *r = st_nested_row(w, bits, row);
    float codes = 0.0f, minima = 0.0f;
    for (size_t b = 0; b < st_nested_blocks(w->n_in); b++) {
        size_t at = st_nested_at(x, w->n_in, t, b);
        struct products sum = block_sum(w, bits, row, b, x->q + at * ST_NESTED_BLOCK);
        codes += x->scale[at] * (float)sum.codes;
        minima += x->scale[at] * (float)sum.minima;
    }
    return codes * r->scale + minima * r->minimum;
}

void st_nested_scalar(const struct st_nested_weight *w, unsigned bits,
                      const struct st_nested_input *x, size_t panel0, size_t panel1, float *y,
                      size_t y_row) {
    size_t row1 = st_min(panel1 * ST_NESTED_PANEL, w->n_out);
    for (size_t row = panel0 * ST_NESTED_PANEL; row < row1; row++)
        for (size_t t = 0; t < x->n_tokens; t += x->terms) {
            float sum = row_sum(w, bits, row, x, t);
            if (x->terms == 2) sum += row_sum(w, bits, row, x, t + 1);
            y[t / x->terms * y_row + row] = sum;
        }
}

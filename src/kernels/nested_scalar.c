// SPDX-License-Identifier: Apache-2.0
// The definition: one weight after the other.
#define QUANTIZE st_nested_quantize_plain
#include "kernels/nested_quantize.h"

static int32_t block_sum(const struct st_nested_weight *w, unsigned bits, size_t row, size_t block,
                         const int8_t *q) {
    const int8_t *table = st_nested_table(w, row, bits);
    size_t first = block * ST_NESTED_BLOCK, n = st_min(ST_NESTED_BLOCK, w->n_in - first);
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (int32_t)table[st_nested_code(w, row, first + i, bits)] * q[i];
    return sum;
}

void st_nested_scalar(const struct st_nested_weight *w, unsigned bits,
                      const struct st_nested_input *x, size_t panel0, size_t panel1, float *y,
                      size_t y_row) {
    for (size_t row = panel0 * ST_NESTED_PANEL; row < panel1 * ST_NESTED_PANEL; row++)
        for (size_t t = 0; t < x->n_tokens && row < w->n_out; t++) {
            float sum = 0.0f;
            for (size_t b = 0; b < st_nested_blocks(w->n_in); b++) {
                size_t at = st_nested_at(x, w->n_in, t, b);
                sum +=
                    x->scale[at] * (float)block_sum(w, bits, row, b, x->q + at * ST_NESTED_BLOCK);
            }
            y[t * y_row + row] = sum * w->scale[row];
        }
}

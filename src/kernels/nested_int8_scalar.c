// SPDX-License-Identifier: Apache-2.0
// The definition: one weight after the other.
#include "kernels/nested_int8_rows.h"

void st_nested_int8_scalar(const struct st_nested_weight *w, const struct st_nested_int8_row *rows,
                           size_t panel, int8_t *to) {
    for (size_t r = 0; r < ST_NESTED_PANEL; r++)
        for (size_t i = 0; i < w->n_in; i++)
            to[i / 4 * 4 * ST_INT8_PANEL + 4 * r + i % 4] =
                st_nested_int8_value(w, rows, panel * ST_NESTED_PANEL + r, i);
    st_nested_int8_pad(w->n_in, to);
}

void st_nested_int8_product_scalar(const struct st_nested_weight *w,
                                   const struct st_nested_int8_row *rows, size_t panel,
                                   const uint8_t *x, size_t x_row, size_t n_tokens, int32_t *sums,
                                   size_t sum_row) {
    for (size_t r = 0; r < ST_NESTED_PANEL; r++) {
        int32_t sum[ST_NESTED_INT8_TOKENS] = {0};
        for (size_t i = 0; i < w->n_in; i++) {
            int value = st_nested_int8_value(w, rows, panel * ST_NESTED_PANEL + r, i);
            for (size_t t = 0; t < n_tokens; t++) sum[t] += value * (int8_t)x[t * x_row + i];
        }
        for (size_t t = 0; t < n_tokens; t++) sums[t * sum_row + r] = sum[t];
    }
}

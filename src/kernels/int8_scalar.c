// SPDX-License-Identifier: Apache-2.0
// The definition that every other tile kernel is held against.
#include "kernels/int8_tiles.h"

static int32_t dot(const int8_t *w, const int8_t *x, size_t k) {
    int32_t sum = 0;
    for (size_t i = 0; i < k; i++) sum += x[i] * w[i / 4 * 4 * ST_INT8_PANEL + i % 4];
    return sum;
}

void st_int8_tile_scalar(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                         size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t p = 0; p < n_panels; p++)
            for (size_t i = 0; i < ST_INT8_PANEL; i++)
                sums[t * sum_row + p * ST_INT8_PANEL + i] =
                    dot(w + p * k * ST_INT8_PANEL + 4 * i, (const int8_t *)(x + t * x_row), k);
}

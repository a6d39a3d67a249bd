// SPDX-License-Identifier: Apache-2.0
// The definition: one block of one row at a time.
#include "kernels/gemv_rows.h"

#include "base/size.h"

enum { BLOCK = 256 };

static void gemv(st_dequantize_fn *dequantize, const unsigned char *w, size_t row_bytes,
                 size_t n_rows, size_t k, const float *x, size_t n_columns, float *y,
                 size_t y_col) {
    float row[BLOCK];
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t c = 0; c < n_columns; c++) y[c * y_col + r] = 0.0f;
        for (size_t k0 = 0; k0 < k; k0 += BLOCK) {
            size_t n = st_min(BLOCK, k - k0);
            dequantize(w + r * row_bytes, k0, n, row);
            for (size_t c = 0; c < n_columns; c++)
                for (size_t i = 0; i < n; i++) y[c * y_col + r] += row[i] * x[c * k + k0 + i];
        }
    }
}

#define GEMV(id, type, isa)                                                                        \
    void st_gemv_##type##_##isa(const void *w, size_t row_bytes, size_t n_rows, size_t k,          \
                                const float *x, size_t n_columns, float *y, size_t y_col) {        \
        gemv(st_dequantize_##type##_##isa, w, row_bytes, n_rows, k, x, n_columns, y, y_col);       \
    }

ST_DEQUANTIZE_TYPES(GEMV, scalar)

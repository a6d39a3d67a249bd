// SPDX-License-Identifier: Apache-2.0
// Matrix times one vector, or a few: reads every weight from memory once. What decoding does.
#ifndef ST_KERNELS_GEMV_H
#define ST_KERNELS_GEMV_H

#include "base/dtype.h"

#include <stddef.h>
#include <stdint.h>

enum {
    ST_GEMV_MAX_COLUMNS = 16,
    ST_GEMV_PASS = 4, // columns whose sums are in registers together
};

// y[c * y_col + r] = sum over k of w[r, k] * x[c * k + k]  for r in [0, n_rows), c in [0,
// n_columns). w: rows of k elements, row_bytes apart, any alignment. x: [n_columns, k] float.
// n_columns in [1, ST_GEMV_MAX_COLUMNS]; more than ST_GEMV_PASS are computed in several passes over
// a block of a few rows of w, which the cache holds meanwhile. Several rows go together so that
// loads overlap; the order of additions depends on k alone.
typedef void st_gemv_fn(const void *w, size_t row_bytes, size_t n_rows, size_t k, const float *x,
                        size_t n_columns, float *y, size_t y_col);

struct st_gemv {
    const char *name;
    uint64_t isa;
    st_gemv_fn
        *fn[ST_N_DTYPES]; // types without a kernel of their own go through dequantize; never NULL
};

extern const struct st_gemv st_gemvs[]; // best first; ends with a NULL name
const struct st_gemv *st_gemv_select(uint64_t cpu_flags);

#endif

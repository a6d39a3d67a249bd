// SPDX-License-Identifier: Apache-2.0
// A linear: y[t, n] = sum over k of x[t, k] * w[n, k] + bias[n], for some of its rows n. Few tokens
// go through gemv.h; more go through the register tile: a block of weight rows is expanded to
// floats that stay in the nearest cache and swept over all tokens. The result of one output depends
// on its row and token alone, not on which call or thread computed it.
#ifndef ST_KERNELS_LINEAR_H
#define ST_KERNELS_LINEAR_H

#include "kernels/expand.h"
#include "kernels/gemv.h"
#include "kernels/tile.h"

struct st_linear_kernels {
    const struct st_tile *tile;
    const struct st_expand *expand;
    const struct st_gemv *gemv;
};

struct st_linear_args {
    const void *w; // row 0, as stored
    size_t row_bytes;
    enum st_dtype dtype;
    size_t k;
    size_t n_tokens;
    // n_tokens <= ST_GEMV_MAX_COLUMNS: [n_tokens, k]. More: packed by st_tile_pack.
    const float *x;
    const float *bias; // [rows] or NULL
    float *y;          // y[t * y_row + n], n counted from row 0
    size_t y_row;
};

// Computes rows [row0, row1). scratch: st_linear_scratch_floats floats, one per caller.
void st_linear_rows(const struct st_linear_kernels *kernels, const struct st_linear_args *args,
                    size_t row0, size_t row1, float *scratch);

size_t st_linear_scratch_floats(const struct st_tile *tile, size_t n_tokens);

#endif

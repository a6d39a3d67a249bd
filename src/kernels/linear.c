// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear.h"

#include "base/size.h"

#include <string.h>

// K_BLOCK x m floats of weights stay in the first-level cache, K_BLOCK x width of the input pass
// through it from the second; a multiple of every block_items.
enum { K_BLOCK = 512, ROWS = 64 };

size_t st_linear_scratch_floats(const struct st_tile *tile, size_t n_tokens) {
    size_t rows = st_round_up(ROWS, tile->m);
    return tile->m * K_BLOCK + rows * (st_tile_padded(tile, n_tokens) + 16) + ST_TILE_MAX_WIDTH;
}

// out[m, K_BLOCK]: rows [row, row + m), elements [k0, k0 + n); rows past row1 are zeros.
static void expand_rows(const struct st_linear_kernels *kernels, const struct st_linear_args *a,
                        size_t row, size_t row1, size_t k0, size_t n, float *out) {
    for (size_t m = 0; m < kernels->tile->m; m++, out += K_BLOCK) {
        if (row + m < row1)
            kernels->expand->fn[a->dtype]((const unsigned char *)a->w + (row + m) * a->row_bytes,
                                          k0, n, out);
        else
            memset(out, 0, n * sizeof *out);
    }
}

// sums[rows, padded] += w[row0.., k0..k0 + n) * x
static void add_k_block(const struct st_linear_kernels *kernels, const struct st_linear_args *a,
                        size_t row0, size_t row1, size_t k0, size_t n, float *weights, float *sums,
                        size_t sum_row) {
    const struct st_tile *tile = kernels->tile;
    size_t padded = st_tile_padded(tile, a->n_tokens);
    for (size_t row = row0; row < row1; row += tile->m) {
        expand_rows(kernels, a, row, row1, k0, n, weights);
        for (size_t t = 0; t < padded;) {
            size_t width = st_tile_width(tile, a->n_tokens, t);
            tile->fn[width / tile->lanes - 1](n, weights, K_BLOCK, 1, a->x + t * a->k + k0 * width,
                                              sums + (row - row0) * sum_row + t, sum_row);
            t += width;
        }
    }
}

static void store(const struct st_linear_args *a, size_t row0, size_t row1, const float *sums,
                  size_t sum_row) {
    for (size_t t0 = 0; t0 < a->n_tokens; t0 += 16) { // a few cache lines of sums at a time
        size_t t1 = st_min(t0 + 16, a->n_tokens);
        for (size_t t = t0; t < t1; t++)
            for (size_t row = row0; row < row1; row++)
                a->y[t * a->y_row + row] =
                    sums[(row - row0) * sum_row + t] + (a->bias ? a->bias[row] : 0.0f);
    }
}

static void tile_rows(const struct st_linear_kernels *kernels, const struct st_linear_args *a,
                      size_t row0, size_t row1, float *scratch) {
    const struct st_tile *tile = kernels->tile;
    // Rows a power of two apart would fall into the same cache sets.
    size_t sum_row = st_tile_padded(tile, a->n_tokens) + 16;
    float *sums = scratch + tile->m * K_BLOCK;
    memset(sums, 0, st_round_up(row1 - row0, tile->m) * sum_row * sizeof *sums);
    for (size_t k0 = 0; k0 < a->k; k0 += K_BLOCK)
        add_k_block(kernels, a, row0, row1, k0, st_min(K_BLOCK, a->k - k0), scratch, sums, sum_row);
    store(a, row0, row1, sums, sum_row);
}

static void gemv_rows(const struct st_linear_kernels *kernels, const struct st_linear_args *a,
                      size_t row0, size_t row1) {
    kernels->gemv->fn[a->dtype]((const unsigned char *)a->w + row0 * a->row_bytes, a->row_bytes,
                                row1 - row0, a->k, a->x, a->n_tokens, a->y + row0, a->y_row);
    if (!a->bias) return;
    for (size_t t = 0; t < a->n_tokens; t++)
        for (size_t row = row0; row < row1; row++) a->y[t * a->y_row + row] += a->bias[row];
}

void st_linear_rows(const struct st_linear_kernels *kernels, const struct st_linear_args *args,
                    size_t row0, size_t row1, float *scratch) {
    if (args->n_tokens <= ST_GEMV_MAX_COLUMNS) {
        gemv_rows(kernels, args, row0, row1);
        return;
    }
    for (size_t row = row0; row < row1; row += ROWS)
        tile_rows(kernels, args, row, st_min(row + ROWS, row1), scratch);
}

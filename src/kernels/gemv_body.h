// SPDX-License-Identifier: Apache-2.0
// Matrix times up to 16 vectors for one instruction set: several rows at once, so that many loads
// and multiply-adds are under way and the vectors are read from the cache once for all of them; the
// next rows are prefetched meanwhile. More vectors than have their sums in registers are multiplied
// a block of k at a time, which the cache holds for GROUP_ROWS rows. One accumulator
// per row and column, summed in ascending order of k, however many rows and columns there are.
#include "base/dtype.h"
#include "base/size.h"
#include "kernels/dequantize_rows.h"
#include "kernels/gemv_rows.h"
#include "kernels/vec.h"

#include <stdbool.h>
#include <string.h>

// Rows at once: as many as have their sums in registers, of which AVX2 has 16 and the others 32.
enum {
    GEMV_ROWS = 8,
    MAX_SUMS = VF_LANES == 8 ? 8 : 16,
    // Of products with more than ST_GEMV_PASS columns. AVX-512 and NEON are as fast with whole
    // rows.
    TILE_ROWS = VF_LANES == 8 ? 3 : MAX_SUMS / ST_GEMV_PASS,
    GROUP_ROWS = VF_LANES == 8 ? 12 : TILE_ROWS,
    K_BLOCK = VF_LANES == 8 ? 256 : 1 << 30,
    DEQUANTIZED = 256,
    CACHE_LINE = 64,
};

#define UNROLL _Pragma("GCC unroll 8")
#define INLINE static inline __attribute__((always_inline))

// Loads VF_LANES weights at p.
typedef vf load_fn(const void *p);

INLINE vf load_f32(const void *p) {
    return vf_load(p);
}

// The last n < VF_LANES weights, zeros behind them.
INLINE vf load_tail(load_fn *load, const unsigned char *p, size_t n, size_t item_bytes) {
    unsigned char t[VF_LANES * sizeof(float)] = {0};
    memcpy(t, p, n * item_bytes);
    return load(t);
}

// The next VF_LANES of n_rows rows times n_columns columns.
INLINE void dot_lanes(load_fn *load, const unsigned char *w, size_t row_bytes, size_t n_rows,
                      const float *x, size_t x_col, size_t n_columns, vf *sum) {
    UNROLL for (size_t r = 0; r < n_rows; r++) {
        vf v = load(w + r * row_bytes);
        UNROLL for (size_t c = 0; c < n_columns; c++) sum[r * n_columns + c] =
            vf_fma(v, vf_load(x + c * x_col), sum[r * n_columns + c]);
    }
}

// Adds n_rows rows times n_columns columns, both constants where this is called. ahead, constant
// too: the rows that are wanted next are that many behind these; 0: none.
INLINE void dot_rows(load_fn *load, size_t item_bytes, const unsigned char *w, size_t row_bytes,
                     size_t n_rows, size_t ahead, size_t k, const float *x, size_t x_col,
                     size_t n_columns, vf *sum) {
    const size_t line = CACHE_LINE / item_bytes;
    size_t i = 0;
    for (; i + line <= k; i += line) {
        // Into the second-level cache: the first holds x.
        if (ahead)
            UNROLL for (size_t r = 0; r < n_rows; r++)
                __builtin_prefetch(w + (ahead + r) * row_bytes + i * item_bytes, 0, 2);
        UNROLL for (size_t j = i; j < i + line; j += VF_LANES)
            dot_lanes(load, w + j * item_bytes, row_bytes, n_rows, x + j, x_col, n_columns, sum);
    }
    for (; i + VF_LANES <= k; i += VF_LANES)
        dot_lanes(load, w + i * item_bytes, row_bytes, n_rows, x + i, x_col, n_columns, sum);
    if (i < k) UNROLL for (size_t r = 0; r < n_rows; r++) {
            vf v = load_tail(load, w + r * row_bytes + i * item_bytes, k - i, item_bytes);
            UNROLL for (size_t c = 0; c < n_columns; c++) sum[r * n_columns + c] =
                vf_fma(v, vf_load_n(x + c * x_col + i, k - i), sum[r * n_columns + c]);
        }
}

INLINE void clear_sums(size_t n, vf *sum) {
    UNROLL for (size_t i = 0; i < n; i++) sum[i] = vf_zero();
}

INLINE void store_rows(size_t n_rows, size_t n_columns, vf *sum, float *y, size_t y_col) {
    UNROLL for (size_t c = 0; c < n_columns; c++) UNROLL for (size_t r = 0; r < n_rows; r++)
        y[c * y_col + r] = vf_sum(sum[r * n_columns + c]);
}

INLINE void native_rows(load_fn *load, size_t item_bytes, const unsigned char *w, size_t row_bytes,
                        size_t n_rows, size_t k, const float *x, size_t n_columns, float *y,
                        size_t y_col) {
    vf sum[MAX_SUMS];
    clear_sums(n_rows * n_columns, sum);
    dot_rows(load, item_bytes, w, row_bytes, n_rows, n_rows, k, x, k, n_columns, sum);
    store_rows(n_rows, n_columns, sum, y, y_col);
}

INLINE void gemv_columns(load_fn *load, size_t item_bytes, const unsigned char *w, size_t row_bytes,
                         size_t n_rows, size_t k, const float *x, size_t n_columns, float *y,
                         size_t y_col) {
    const size_t rows = n_columns == 1 ? GEMV_ROWS : MAX_SUMS / (n_columns == 3 ? 4 : n_columns);
    size_t r = 0;
    for (; r + rows <= n_rows; r += rows)
        native_rows(load, item_bytes, w + r * row_bytes, row_bytes, rows, k, x, n_columns, y + r,
                    y_col);
    for (; r < n_rows; r++)
        native_rows(load, item_bytes, w + r * row_bytes, row_bytes, 1, k, x, n_columns, y + r,
                    y_col);
}

// The sums of GROUP_ROWS rows, of each for all columns.
typedef vf group_sums[GROUP_ROWS][ST_GEMV_MAX_COLUMNS];

// n_rows rows times n_columns columns from c on, all three constants but c: elements of one block.
INLINE void add_tile(load_fn *load, size_t item_bytes, const unsigned char *w, size_t row_bytes,
                     size_t n_rows, size_t ahead, size_t n, const float *x, size_t x_col, size_t c,
                     size_t n_columns, vf (*sums)[ST_GEMV_MAX_COLUMNS]) {
    vf sum[TILE_ROWS * ST_GEMV_PASS];
    UNROLL for (size_t r = 0; r < n_rows; r++) UNROLL for (size_t i = 0; i < n_columns; i++)
        sum[r * n_columns + i] = sums[r][c + i];
    dot_rows(load, item_bytes, w, row_bytes, n_rows, ahead, n, x + c * x_col, x_col, n_columns,
             sum);
    UNROLL for (size_t r = 0; r < n_rows; r++) UNROLL for (size_t i = 0; i < n_columns; i++)
        sums[r][c + i] = sum[r * n_columns + i];
}

// A block of n_rows rows, a constant. The first columns bring it into the cache, and prefetch.
INLINE void add_block(load_fn *load, size_t item_bytes, const unsigned char *w, size_t row_bytes,
                      size_t n_rows, size_t n, const float *x, size_t x_col, size_t n_columns,
                      vf (*sums)[ST_GEMV_MAX_COLUMNS]) {
    size_t c = ST_GEMV_PASS;
    add_tile(load, item_bytes, w, row_bytes, n_rows, GROUP_ROWS, n, x, x_col, 0, ST_GEMV_PASS,
             sums);
    for (; c + ST_GEMV_PASS <= n_columns; c += ST_GEMV_PASS)
        add_tile(load, item_bytes, w, row_bytes, n_rows, 0, n, x, x_col, c, ST_GEMV_PASS, sums);
    for (; c + 2 <= n_columns; c += 2)
        add_tile(load, item_bytes, w, row_bytes, n_rows, 0, n, x, x_col, c, 2, sums);
    if (c < n_columns) add_tile(load, item_bytes, w, row_bytes, n_rows, 0, n, x, x_col, c, 1, sums);
}

// At most GROUP_ROWS rows times more than ST_GEMV_PASS columns.
INLINE void gemv_group(load_fn *load, size_t item_bytes, const unsigned char *w, size_t row_bytes,
                       size_t n_rows, size_t k, const float *x, size_t n_columns, float *y,
                       size_t y_col) {
    group_sums sums;
    for (size_t r = 0; r < n_rows; r++) clear_sums(ST_GEMV_MAX_COLUMNS, sums[r]);
    for (size_t k0 = 0; k0 < k; k0 += K_BLOCK) {
        size_t n = st_min(K_BLOCK, k - k0), r = 0;
        const unsigned char *from = w + k0 * item_bytes;
        for (; r + TILE_ROWS <= n_rows; r += TILE_ROWS)
            add_block(load, item_bytes, from + r * row_bytes, row_bytes, TILE_ROWS, n, x + k0, k,
                      n_columns, sums + r);
        for (; r < n_rows; r++)
            add_block(load, item_bytes, from + r * row_bytes, row_bytes, 1, n, x + k0, k, n_columns,
                      sums + r);
    }
    for (size_t r = 0; r < n_rows; r++)
        for (size_t c = 0; c < n_columns; c++) y[c * y_col + r] = vf_sum(sums[r][c]);
}

INLINE void gemv_groups(load_fn *load, size_t item_bytes, const unsigned char *w, size_t row_bytes,
                        size_t n_rows, size_t k, const float *x, size_t n_columns, float *y,
                        size_t y_col) {
    for (size_t r = 0; r < n_rows; r += GROUP_ROWS)
        gemv_group(load, item_bytes, w + r * row_bytes, row_bytes, st_min(GROUP_ROWS, n_rows - r),
                   k, x, n_columns, y + r, y_col);
}

// Block types: DEQUANTIZED elements of each row at a time become floats, then as above, a column at
// a time.
static void add_dequantized(float (*rows)[DEQUANTIZED], size_t n_rows, size_t n, const float *x,
                            vf *sum) {
    if (n_rows == GEMV_ROWS)
        dot_rows(load_f32, sizeof(float), (const unsigned char *)rows, sizeof *rows, GEMV_ROWS, 0,
                 n, x, 0, 1, sum);
    else
        for (size_t r = 0; r < n_rows; r++)
            dot_rows(load_f32, sizeof(float), (const unsigned char *)rows[r], 0, 1, 0, n, x, 0, 1,
                     sum + r);
}

static void dequantized_rows(st_dequantize_fn *dequantize, const unsigned char *w, size_t row_bytes,
                             size_t n_rows, size_t k, const float *x, size_t n_columns, float *y,
                             size_t y_col) {
    vf sums[ST_GEMV_MAX_COLUMNS][GEMV_ROWS];
    float rows[GEMV_ROWS][DEQUANTIZED];
    for (size_t c = 0; c < n_columns; c++) clear_sums(GEMV_ROWS, sums[c]);
    for (size_t k0 = 0; k0 < k; k0 += DEQUANTIZED) {
        size_t n = st_min(DEQUANTIZED, k - k0);
        for (size_t r = 0; r < n_rows; r++) dequantize(w + r * row_bytes, k0, n, rows[r]);
        for (size_t c = 0; c < n_columns; c++)
            add_dequantized(rows, n_rows, n, x + c * k + k0, sums[c]);
    }
    for (size_t c = 0; c < n_columns; c++) store_rows(n_rows, 1, sums[c], y + c * y_col, 0);
}

static void gemv_dequantized(st_dequantize_fn *dequantize, const unsigned char *w, size_t row_bytes,
                             size_t n_rows, size_t k, const float *x, size_t n_columns, float *y,
                             size_t y_col) {
    for (size_t r = 0; r < n_rows; r += GEMV_ROWS)
        dequantized_rows(dequantize, w + r * row_bytes, row_bytes, st_min(GEMV_ROWS, n_rows - r), k,
                         x, n_columns, y + r, y_col);
}

// The number of columns becomes a constant.
#define GEMV_NATIVE(type, load, item_bytes)                                                        \
    void NAME(type)(const void *w, size_t row_bytes, size_t n_rows, size_t k, const float *x,      \
                    size_t n_columns, float *y, size_t y_col) {                                    \
        if (n_columns == 1)                                                                        \
            gemv_columns(load, item_bytes, w, row_bytes, n_rows, k, x, 1, y, y_col);               \
        else if (n_columns == 2)                                                                   \
            gemv_columns(load, item_bytes, w, row_bytes, n_rows, k, x, 2, y, y_col);               \
        else if (n_columns == 3)                                                                   \
            gemv_columns(load, item_bytes, w, row_bytes, n_rows, k, x, 3, y, y_col);               \
        else if (n_columns == ST_GEMV_PASS)                                                        \
            gemv_columns(load, item_bytes, w, row_bytes, n_rows, k, x, ST_GEMV_PASS, y, y_col);    \
        else                                                                                       \
            gemv_groups(load, item_bytes, w, row_bytes, n_rows, k, x, n_columns, y, y_col);        \
    }

GEMV_NATIVE(f32, load_f32, 4)
GEMV_NATIVE(f16, vf_load_f16, 2)
GEMV_NATIVE(bf16, vf_load_bf16, 2)

#define GEMV_BLOCKS(id, type, isa)                                                                 \
    void NAME(type)(const void *w, size_t row_bytes, size_t n_rows, size_t k, const float *x,      \
                    size_t n_columns, float *y, size_t y_col) {                                    \
        gemv_dequantized(DEQUANTIZE(type), w, row_bytes, n_rows, k, x, n_columns, y, y_col);       \
    }

ST_BLOCK_TYPES(GEMV_BLOCKS, )

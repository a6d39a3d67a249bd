// SPDX-License-Identifier: Apache-2.0
// BF16 on the tile unit: 32 rows by up to 48 lanes of sums. What kernels/pairs.h packs is what the
// unit takes: 16 rows of 16 pairs for A, 16 pairs of 16 lanes for B, rows any distance apart.
#include "kernels/amx_tile.h"
#include "kernels/pairs_rows.h"

#define INLINE static inline __attribute__((always_inline))

enum { TILE = 16, M = 2 * TILE, MAX_WIDTH = 3 * TILE };

// Sums are tiles 0 to 5: three of the upper rows, three of the lower ones.
#define EACH_SUM(n_vectors, DO, c, c_row)                                                          \
    do {                                                                                           \
        DO(0, (c), (c_row)*4);                                                                     \
        DO(3, (c) + TILE * (c_row), (c_row)*4);                                                    \
        if ((n_vectors) > 1) DO(1, (c) + TILE, (c_row)*4);                                         \
        if ((n_vectors) > 1) DO(4, (c) + TILE * (c_row) + TILE, (c_row)*4);                        \
        if ((n_vectors) > 2) DO(2, (c) + 2 * TILE, (c_row)*4);                                     \
        if ((n_vectors) > 2) DO(5, (c) + TILE * (c_row) + 2 * TILE, (c_row)*4);                    \
    } while (0)

// 16 pairs of k. The lower rows begin with the columns that are loaded already.
INLINE void add_step(size_t n_vectors, const uint32_t *a, size_t a_row, const uint32_t *b,
                     size_t b_row) {
    st_amx_load(6, a, a_row * 4);
    st_amx_load(7, b, b_row * 4);
    st_amx_bf16(0, 6, 7);
    if (n_vectors > 1) {
        st_amx_load(7, b + TILE, b_row * 4);
        st_amx_bf16(1, 6, 7);
    }
    if (n_vectors > 2) {
        st_amx_load(7, b + 2 * TILE, b_row * 4);
        st_amx_bf16(2, 6, 7);
    }
    st_amx_load(6, a + TILE * a_row, a_row * 4);
    if (n_vectors > 2) {
        st_amx_bf16(5, 6, 7);
        st_amx_load(7, b + TILE, b_row * 4);
    }
    if (n_vectors > 1) {
        st_amx_bf16(4, 6, 7);
        st_amx_load(7, b, b_row * 4);
    }
    st_amx_bf16(3, 6, 7);
}

// n pairs, 16 or fewer, of rows that may lie across: copied, with zeros behind them.
INLINE void add_copied(size_t n_vectors, size_t n, const uint32_t *a, size_t a_row, size_t a_col,
                       const uint32_t *b) {
    uint32_t rows[M * TILE] = {0}, columns[TILE * MAX_WIDTH] = {0};
    size_t width = n_vectors * TILE;
    for (size_t m = 0; m < M; m++)
        for (size_t i = 0; i < n; i++) rows[m * TILE + i] = a[m * a_row + i * a_col];
    memcpy(columns, b, n * width * sizeof *b);
    add_step(n_vectors, rows, TILE, columns, width);
}

INLINE void multiply(size_t n_vectors, size_t k, const uint32_t *a, size_t a_row, size_t a_col,
                     const uint32_t *b, float *c, size_t c_row) {
    size_t width = n_vectors * TILE, whole = a_col == 1 ? k / TILE * TILE : 0;
    EACH_SUM(n_vectors, st_amx_load, c, c_row);
    for (size_t i = 0; i < whole; i += TILE)
        add_step(n_vectors, a + i, a_row, b + i * width, width);
    for (size_t i = whole; i < k; i += TILE)
        add_copied(n_vectors, k - i < TILE ? k - i : TILE, a + i * a_col, a_row, a_col,
                   b + i * width);
    EACH_SUM(n_vectors, st_amx_store, c, c_row);
}

void st_pair_tile_amx_1(size_t k, const uint32_t *a, size_t a_row, size_t a_col, const uint32_t *b,
                        float *c, size_t c_row) {
    multiply(1, k, a, a_row, a_col, b, c, c_row);
}

void st_pair_tile_amx_2(size_t k, const uint32_t *a, size_t a_row, size_t a_col, const uint32_t *b,
                        float *c, size_t c_row) {
    multiply(2, k, a, a_row, a_col, b, c, c_row);
}

void st_pair_tile_amx_3(size_t k, const uint32_t *a, size_t a_row, size_t a_col, const uint32_t *b,
                        float *c, size_t c_row) {
    multiply(3, k, a, a_row, a_col, b, c, c_row);
}

void st_pair_begin_amx(void) {
    st_amx_configure();
}

void st_pair_end_amx(void) {
    st_amx_release();
}

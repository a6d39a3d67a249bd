// SPDX-License-Identifier: Apache-2.0
// 32 rows by 32 tokens: four tiles of sums, two of tokens as they lie in the input, two of a
// panel's next 64 elements of k, which are one tile as they lie in the panel.
#include "kernels/amx_tile.h"
#include "kernels/int8_tiles.h"

#include <stdbool.h>

enum { TILE = 16, TOKENS = 32 };

// The next 64 elements of all tokens, zeros for those that are not there.
static void copy_tokens(const uint8_t *x, size_t x_row, size_t n_tokens, uint8_t *copy) {
    for (size_t t = 0; t < n_tokens; t++) memcpy(copy + t * 64, x + t * x_row, 64);
}

static void multiply(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                     size_t n_tokens, size_t k) {
    _Alignas(64) uint8_t copy[TOKENS * 64] = {0};
    bool whole = n_tokens == TOKENS, wide = n_tokens > TILE, two = n_panels == 2;
    for (size_t i = 0; i < k; i += 64) {
        const uint8_t *from = x + i;
        size_t row = x_row;
        if (!whole) {
            copy_tokens(from, x_row, n_tokens, copy);
            from = copy;
            row = 64;
        }
        st_amx_load(4, from, row);
        st_amx_load(6, w + i * TILE, 64);
        st_amx_int8(0, 4, 6);
        if (two) {
            st_amx_load(7, w + (k + i) * TILE, 64);
            st_amx_int8(1, 4, 7);
        }
        if (!wide) continue;
        st_amx_load(5, from + TILE * row, row);
        st_amx_int8(2, 5, 6);
        if (two) st_amx_int8(3, 5, 7);
    }
}

void st_int8_tile_amx(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                      size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    _Alignas(64) int32_t all[TOKENS * 2 * TILE];
    size_t row_bytes = 2 * TILE * sizeof *all;
    st_amx_configure();
    st_amx_zero(0);
    st_amx_zero(1);
    st_amx_zero(2);
    st_amx_zero(3);
    multiply(w, n_panels, x, x_row, n_tokens, k);
    st_amx_store(0, all, row_bytes);
    st_amx_store(1, all + TILE, row_bytes);
    st_amx_store(2, all + TILE * 2 * TILE, row_bytes);
    st_amx_store(3, all + TILE * 2 * TILE + TILE, row_bytes);
    st_amx_release();
    for (size_t t = 0; t < n_tokens; t++)
        memcpy(sums + t * sum_row, all + t * 2 * TILE, n_panels * TILE * sizeof *all);
}

// SPDX-License-Identifier: Apache-2.0
// 32 rows by 32 tokens at a time: four tiles of sums, two of tokens as they lie in the input, two
// of a panel's next 64 elements of k, which are one tile as they lie in the panel. Tiles of tokens
// and of sums have only as many rows as there are tokens. Setting up the unit takes 0.4 times as
// long as such a product with k = 576, so one call makes up to four.
#include "kernels/amx_tile.h"
#include "kernels/int8_tiles.h"
#include "kernels/prefetch.h"

#include <stdbool.h>

#define INLINE static inline __attribute__((always_inline))

enum { TILE = 16, PANELS = 2, TOKENS = 2 * TILE };

// One product of up to two panels by up to 32 tokens.
struct product {
    const int8_t *w;
    const uint8_t *x;
    size_t x_row, k;
    int32_t *sums;
    size_t sum_row;
};

// wide: more than 16 tokens. two: panels. Both are constants where this is called. All loads come
// before the products, which wait less for them than in turns. The unit's loads alone read memory
// at 0.7 of its speed, so what they take next is prefetched, also from the second-level cache.
INLINE void multiply(const struct product *p, bool wide, bool two) {
    const size_t panel_bytes = p->k * TILE;
    st_amx_zero(0);
    st_amx_zero(1);
    st_amx_zero(2);
    st_amx_zero(3);
    for (size_t i = 0; i < p->k; i += 64) {
        const int8_t *w = p->w + i * TILE;
        const int8_t *ahead = p->w + st_int8_ahead(i * TILE, panel_bytes, two ? 2 : 1);
        st_prefetch_soon(ahead, 64 * TILE);
        if (two) st_prefetch_soon(ahead + panel_bytes, 64 * TILE);
        st_amx_load(4, p->x + i, p->x_row);
        st_amx_load(6, w, 64);
        if (two) st_amx_load(7, w + panel_bytes, 64);
        if (wide) st_amx_load(5, p->x + TILE * p->x_row + i, p->x_row);
        st_amx_int8(0, 4, 6);
        if (two) st_amx_int8(1, 4, 7);
        if (wide) st_amx_int8(2, 5, 6);
        if (wide && two) st_amx_int8(3, 5, 7);
    }
    int32_t *sums = p->sums, *after = p->sums + TILE * p->sum_row;
    const size_t bytes = p->sum_row * sizeof *sums;
    st_amx_store(0, sums, bytes);
    if (two) st_amx_store(1, sums + TILE, bytes);
    if (wide) st_amx_store(2, after, bytes);
    if (wide && two) st_amx_store(3, after + TILE, bytes);
}

// All panels times n tokens, 32 at once: a panel is still in the first-level cache for the next.
INLINE void run(const struct product *all, size_t n_panels, size_t n, bool wide) {
    for (size_t i = 0; i < n_panels; i += PANELS)
        for (size_t t = 0; t < n; t += TOKENS) {
            struct product p = *all;
            p.w += i * p.k * TILE;
            p.x += t * p.x_row;
            p.sums += i * TILE + t * p.sum_row;
            if (n_panels - i >= PANELS)
                multiply(&p, wide, true);
            else
                multiply(&p, wide, false);
        }
}

void st_int8_tile_amx(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                      size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    size_t whole = n_tokens / TOKENS * TOKENS, n = n_tokens - whole;
    struct product p = {w, x, x_row, k, sums, sum_row};
    if (whole) {
        st_amx_configure();
        run(&p, n_panels, whole, true);
    }
    if (n) {
        uint8_t low = (uint8_t)st_min(TILE, n), high = n > TILE ? (uint8_t)(n - TILE) : TILE;
        st_amx_configure_rows(
            (const uint8_t[ST_AMX_TILES]){low, low, high, high, low, high, TILE, TILE});
        p.x += whole * x_row;
        p.sums += whole * sum_row;
        if (n > TILE)
            run(&p, n_panels, n, true);
        else
            run(&p, n_panels, n, false);
    }
    st_amx_release();
}

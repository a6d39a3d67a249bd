// SPDX-License-Identifier: Apache-2.0
// 32 rows by 32 tokens at a time: four tiles of sums, two of tokens as they lie in the input, two
// of a panel's next 64 elements of k, which are one tile as they lie in the panel. Setting up the
// unit takes 0.4 times as long as such a product with k = 576, so one call makes up to four.
#include "kernels/amx_tile.h"
#include "kernels/int8_tiles.h"

#include <stdbool.h>

#define INLINE static inline __attribute__((always_inline))

enum { TILE = 16, PANELS = 2, TOKENS = 2 * TILE };

// One product of up to two panels by up to 32 tokens.
struct product {
    const int8_t *w;
    const uint8_t *x;
    size_t x_row, n_tokens, k;
    int32_t *sums;
    size_t sum_row;
};

// The next 64 elements of 16 tokens; where there are fewer, a copy of theirs with zeros behind.
INLINE const uint8_t *tokens(const struct product *p, size_t first, size_t i, uint8_t *copy,
                             size_t *row) {
    const uint8_t *x = p->x + first * p->x_row + i;
    *row = p->x_row;
    if (p->n_tokens >= first + TILE) return x;
    for (size_t t = 0; first + t < p->n_tokens; t++) memcpy(copy + t * 64, x + t * p->x_row, 64);
    *row = 64;
    return copy;
}

// wide: more than 16 tokens. two: panels. Both are constants where this is called. All loads come
// before the products, which wait less for them than in turns.
INLINE void multiply(const struct product *p, bool wide, bool two) {
    _Alignas(64) uint8_t copy[TILE * 64] = {0};
    for (size_t i = 0; i < p->k; i += 64) {
        size_t row;
        const uint8_t *x = tokens(p, 0, i, copy, &row);
        st_amx_load(4, x, row);
        st_amx_load(6, p->w + i * TILE, 64);
        if (two) st_amx_load(7, p->w + (p->k + i) * TILE, 64);
        if (wide) {
            x = tokens(p, TILE, i, copy, &row);
            st_amx_load(5, x, row);
        }
        st_amx_int8(0, 4, 6);
        if (two) st_amx_int8(1, 4, 7);
        if (wide) st_amx_int8(2, 5, 6);
        if (wide && two) st_amx_int8(3, 5, 7);
    }
}

// A tile of sums, `first` being its first token. The tile is a constant for the compiler.
#define STORE(p, tile, first, panel)                                                               \
    do {                                                                                           \
        int32_t *to = (p)->sums + (first) * (p)->sum_row + (panel)*TILE;                           \
        if ((p)->n_tokens >= (first) + TILE) {                                                     \
            st_amx_store(tile, to, (p)->sum_row * sizeof *to);                                     \
        } else {                                                                                   \
            _Alignas(64) int32_t all[TILE * TILE];                                                 \
            st_amx_store(tile, all, TILE * sizeof *all);                                           \
            for (size_t t = 0; (first) + t < (p)->n_tokens; t++)                                   \
                memcpy(to + t * (p)->sum_row, all + t * TILE, TILE * sizeof *all);                 \
        }                                                                                          \
    } while (0)

INLINE void run(const struct product *p, bool wide, bool two) {
    st_amx_zero(0);
    st_amx_zero(1);
    st_amx_zero(2);
    st_amx_zero(3);
    multiply(p, wide, two);
    STORE(p, 0, 0, 0);
    if (two) STORE(p, 1, 0, 1);
    if (wide) STORE(p, 2, TILE, 0);
    if (wide && two) STORE(p, 3, TILE, 1);
}

void st_int8_tile_amx(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                      size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    st_amx_configure();
    for (size_t i = 0; i < n_panels; i += PANELS)
        for (size_t t = 0; t < n_tokens; t += TOKENS) {
            const struct product p = {w + i * k * TILE,
                                      x + t * x_row,
                                      x_row,
                                      st_min(TOKENS, n_tokens - t),
                                      k,
                                      sums + t * sum_row + i * TILE,
                                      sum_row};
            bool wide = p.n_tokens > TILE, two = n_panels - i >= PANELS;
            if (wide && two)
                run(&p, true, true);
            else if (wide)
                run(&p, true, false);
            else if (two)
                run(&p, false, true);
            else
                run(&p, false, false);
        }
    st_amx_release();
}

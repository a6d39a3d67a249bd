// SPDX-License-Identifier: Apache-2.0
// The 8-bit codes of nested weights for one instruction set, which defines before it includes this:
//   vb, vb_load, vb_shl, vb_shr: bytes of LANES rows, 16 each (bits of neighbours may come in)
//   vb_select: bits of a where the mask's are 1, else of b
//   vb_swap, unless vb_select does: bits of *b that the mask has for those of *a that are n up
//   vb_flip: bits of a where the mask's are 1 turned
//   struct grid and grid_of: of LANES rows, steps and least values of a block's four groups
//   vb_weights: the INT8 weights of codes less 128 in group g
#ifndef ST_KERNELS_NESTED_INT8_CODES_H
#define ST_KERNELS_NESTED_INT8_CODES_H

#include "kernels/nested_int8_rows.h"

#include <stdbool.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

enum {
    PARTS = ST_NESTED_PANEL / LANES, // registers of a vector of a panel
    PART_BYTES = 16 * LANES,
    PLANES = ST_NESTED_STORED - 2, // below the two top bits
    VECTORS = ST_NESTED_BLOCK / 16,
    HALF_ROWS = ST_NESTED_PANEL / 2,
    VECTOR_BYTES = 16 * ST_NESTED_PANEL,
};

// What is read of a panel, from a block on. The last plane may be zeros.
struct source {
    const uint8_t *pairs, *planes[PLANES], *groups;
    size_t last_bytes; // of a block
};

static const uint8_t no_plane[ST_NESTED_PLANE];

INLINE struct source source_of(const struct st_nested_weight *w, size_t panel) {
    size_t at = panel * st_nested_plane_panel_bytes(w->n_in, ST_NESTED_STORED);
    struct source s = {.pairs =
                           st_nested_plane(w, 2) + panel * st_nested_plane_panel_bytes(w->n_in, 2),
                       .groups = w->groups[w->high] + panel * st_nested_group_panel_bytes(w->n_in)};
    for (unsigned b = 0; b < PLANES - 1; b++) s.planes[b] = st_nested_plane(w, b + 3) + at;
    s.planes[PLANES - 1] = no_plane;
    if (w->stored < ST_NESTED_STORED) return s;
    s.planes[PLANES - 1] = st_nested_plane(w, ST_NESTED_STORED) + at;
    s.last_bytes = ST_NESTED_PLANE;
    return s;
}

INLINE void next_block(struct source *s) {
    s->pairs += ST_NESTED_PAIRS;
    s->groups += ST_NESTED_GROUP_BYTES;
    for (unsigned b = 0; b < PLANES - 1; b++) s->planes[b] += ST_NESTED_PLANE;
    s->planes[PLANES - 1] += s->last_bytes;
}

#ifndef vb_swap
#define vb_swap(n, mask, a, b)                                                                     \
    do {                                                                                           \
        vb was_a = *(a), was_b = *(b);                                                             \
        *(a) = vb_select(mask, was_a, vb_shl(was_b, n));                                           \
        *(b) = vb_select(mask, vb_shr(was_a, n), was_b);                                           \
    } while (0)
#endif

// Two planes side by side, whose bits a + 2 f become bits 2 f + 1 and 2 f, those of vector f.
INLINE vb join(unsigned a, vb upper, vb lower) {
    return a ? vb_select(0xaa, upper, vb_shr(lower, 1)) : vb_select(0xaa, vb_shl(upper, 1), lower);
}

// Half a byte of vectors 0 and 2 in `even`, of 1 and 3 in `odd`.
struct two {
    vb even, odd;
};

INLINE struct two halves_of(vb upper, vb lower) {
    struct two two = {lower, upper};
    vb_swap(2, 0x33, &two.even, &two.odd);
    return two;
}

// Vectors 4 a to 4 a + 3 of a block. Not an array, which would live in memory.
struct four {
    vb f0, f1, f2, f3;
};

// Codes less 128 of a part, of vectors 4 a to 4 a + 3; in half a block, whose bits `a` are those of
// rows, of 0 to 3.
INLINE struct four codes_of(const struct source *s, bool half, size_t part, unsigned a) {
    size_t at = part * PART_BYTES, plane_at = half ? at % (ST_NESTED_PLANE / 2) : at;
    unsigned bit = half ? (unsigned)part * LANES / HALF_ROWS : a;
    vb plane[PLANES];
    UNROLL for (unsigned b = 0; b < PLANES; b++) plane[b] = vb_load(s->planes[b] + plane_at);
    vb top = vb_flip(0xaa, vb_load(s->pairs + a * ST_NESTED_PLANE + at));
    struct two high = halves_of(top, join(bit, plane[0], plane[1]));
    struct two low = halves_of(join(bit, plane[2], plane[3]), join(bit, plane[4], plane[5]));
    struct four c = {low.even, low.odd, high.even, high.odd};
    vb_swap(4, 0x0f, &c.f0, &c.f2);
    vb_swap(4, 0x0f, &c.f1, &c.f3);
    return c;
}

// The weights of the same.
INLINE struct four weights_of(const struct source *s, bool half, size_t part, unsigned a,
                              const struct grid *grid) {
    unsigned g = 2 * (half ? (unsigned)part * LANES / HALF_ROWS : a);
    struct four c = codes_of(s, half, part, a);
    return (struct four){vb_weights(c.f0, grid, g), vb_weights(c.f1, grid, g),
                         vb_weights(c.f2, grid, g + 1), vb_weights(c.f3, grid, g + 1)};
}

// The grid of a part in the block that s is at.
INLINE struct grid part_grid(const struct source *s, bool half, size_t part,
                             const struct st_nested_int8_row *rows, int16_t middle) {
    size_t row = part * LANES, at = (half ? row % HALF_ROWS : row) * ST_NESTED_GROUPS;
    const uint8_t *minima = s->groups + ST_NESTED_GROUP_BYTES / (half ? 4 : 2);
    return grid_of(s->groups + at, minima + at, rows + row, middle);
}

// What grids need of a weight: its code of half the lower bits, less 128, in the upper byte.
INLINE int16_t middle_of(const struct st_nested_weight *w) {
    return (int16_t)(((int)st_nested_int8_half(w) - 128) * 256);
}

#endif

// SPDX-License-Identifier: Apache-2.0
// INT8 panels from nested codes for one instruction set, which defines before it includes this:
//   vb, vb_load, vb_store, vb_and, vb_or, vb_shl, vb_shr: bytes of LANES rows, 16 each (bits of
//   neighbours may come in)
//   vw, vw_load: LANES rows' eight words, the rows' own or those of a group
//   struct grid and grid_of: of LANES rows, steps and least values of a block's four groups
//   vb_weights: the INT8 weights of codes of 8 bits in group g
//   store_vector: a vector of a panel, 128 bytes, as four times 32 bytes 64 apart
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

// Two planes side by side: bits 2 f + 1 and 2 f belong to vector f.
INLINE vb join(vb upper, vb lower) {
    return vb_or(vb_shl(vb_and(upper, 0x55), 1), vb_and(lower, 0x55));
}

#define BITS(v, f, mask) vb_and((f) ? vb_shr(v, 2 * (f)) : (v), mask)

// Vectors 4 a to 4 a + 3 of a part; in half a block, whose bits `a` are those of rows, 0 to 3.
INLINE void add_vectors(const struct source *s, bool half, size_t part, unsigned a,
                        const struct grid *grid, uint8_t *block) {
    size_t at = part * PART_BYTES, plane_at = half ? at % (ST_NESTED_PLANE / 2) : at;
    unsigned bit = half ? (unsigned)part * LANES / HALF_ROWS : a;
    vb top = vb_load(s->pairs + a * ST_NESTED_PLANE + at), plane[PLANES];
    UNROLL for (unsigned b = 0; b < PLANES; b++) {
        plane[b] = vb_load(s->planes[b] + plane_at);
        if (bit) plane[b] = vb_shr(plane[b], 1);
    }
    vb second = join(plane[0], plane[1]), third = join(plane[2], plane[3]);
    vb fourth = join(plane[4], plane[5]);
    UNROLL for (int f = 0; f < 4; f++) {
        vb high = vb_or(vb_shl(BITS(top, f, 3), 2), BITS(second, f, 3));
        vb low = vb_or(vb_shl(BITS(third, f, 3), 2), BITS(fourth, f, 3));
        vb code = vb_or(vb_shl(high, 4), low);
        unsigned j = 4 * a + (unsigned)f, g = 2 * bit + (unsigned)f / 2;
        vb_store(block + j * VECTOR_BYTES + at, vb_weights(code, grid, g));
    }
}

// All vectors of a block, or those of half a block.
INLINE void add_block(const struct source *s, bool half, const struct st_nested_int8_row *rows,
                      int16_t middle, uint8_t *block) {
    const uint8_t *minima = s->groups + ST_NESTED_GROUP_BYTES / (half ? 4 : 2);
    UNROLL for (size_t part = 0; part < PARTS; part++) {
        size_t row = part * LANES, at = (half ? row % HALF_ROWS : row) * ST_NESTED_GROUPS;
        struct grid grid = grid_of(s->groups + at, minima + at, rows + row, middle);
        add_vectors(s, half, part, 0, &grid, block);
        if (!half) add_vectors(s, half, part, 1, &grid, block);
    }
}

void NAME(const struct st_nested_weight *w, const struct st_nested_int8_row *rows, size_t panel,
          int8_t *to) {
    struct source s = source_of(w, panel);
    size_t k = st_int8_padded_k(w->n_in);
    int16_t middle = (int16_t)(((int)st_nested_int8_half(w) - 128) * 256);
    _Alignas(64) uint8_t block[VECTORS * VECTOR_BYTES];
    rows += panel * ST_NESTED_PANEL;
    for (size_t i = 0; i < k; i += ST_NESTED_BLOCK, next_block(&s)) {
        size_t vectors = st_min(VECTORS, (k - i) / 16);
        if (vectors == VECTORS)
            add_block(&s, false, rows, middle, block);
        else
            add_block(&s, true, rows, middle, block);
        for (size_t j = 0; j < vectors; j++)
            store_vector(block + j * VECTOR_BYTES, to + (i + 16 * j) * ST_INT8_PANEL);
    }
    st_nested_int8_pad(w->n_in, to);
}

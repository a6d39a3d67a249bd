// SPDX-License-Identifier: Apache-2.0
// INT8 panels from nested codes for one instruction set, which defines, beside what
// nested_int8_codes.h wants, vb_store and
//   store_vector: a vector of a panel, 128 bytes, as four times 32 bytes 64 apart
#include "kernels/nested_int8_codes.h"

// Vectors 4 a to 4 a + 3 of a part.
INLINE void add_vectors(const struct source *s, bool half, size_t part, unsigned a,
                        const struct grid *grid, uint8_t *block) {
    struct four w = weights_of(s, half, part, a, grid);
    uint8_t *to = block + 4 * a * VECTOR_BYTES + part * PART_BYTES;
    vb_store(to, w.f0);
    vb_store(to + VECTOR_BYTES, w.f1);
    vb_store(to + 2 * VECTOR_BYTES, w.f2);
    vb_store(to + 3 * VECTOR_BYTES, w.f3);
}

// All vectors of a block, or those of half a block.
INLINE void add_block(const struct source *s, bool half, const struct st_nested_int8_row *rows,
                      int16_t middle, uint8_t *block) {
    UNROLL for (size_t part = 0; part < PARTS; part++) {
        struct grid grid = part_grid(s, half, part, rows, middle);
        add_vectors(s, half, part, 0, &grid, block);
        if (!half) add_vectors(s, half, part, 1, &grid, block);
    }
}

void NAME(const struct st_nested_weight *w, const struct st_nested_int8_row *rows, size_t panel,
          int8_t *to) {
    struct source s = source_of(w, panel);
    size_t k = st_int8_padded_k(w->n_in);
    int16_t middle = middle_of(w);
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

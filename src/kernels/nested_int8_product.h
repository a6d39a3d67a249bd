// SPDX-License-Identifier: Apache-2.0
// Products with INT8 weights straight from nested codes: they never lie in memory. The instruction
// set that includes this defines, beside what nested_int8_codes.h wants,
//   TOGETHER: parts whose products share a token's loads
//   vi, vi_zero, vi_dot: 32-bit sums of LANES rows, and products with 16 bytes of a token added
//   vb_x: 16 bytes of a token to every lane
//   vi_rows: the sums of LANES rows
#include "kernels/nested_int8_codes.h"
#include "kernels/prefetch.h"

// Tokens of which all are multiplied at once.
struct tokens {
    const uint8_t *x;
    size_t row;
};

// Panels follow each other, so what lies ahead is needed soon.
INLINE void prefetch_block(const struct source *s) {
    st_prefetch(s->pairs, ST_NESTED_PAIRS);
    st_prefetch(s->groups, ST_NESTED_GROUP_BYTES);
    UNROLL for (unsigned b = 0; b < PLANES; b++) st_prefetch(s->planes[b], ST_NESTED_PLANE);
}

// Adds four vectors of parts [part, part + TOGETHER), which x begins with.
INLINE void add_products(const struct source *s, bool half, size_t part, unsigned a,
                         const struct grid grid[TOGETHER], struct tokens x, size_t n,
                         vi sum[TOGETHER][ST_NESTED_INT8_TOKENS]) {
    struct four w[TOGETHER];
    UNROLL for (size_t p = 0; p < TOGETHER; p++) w[p] = weights_of(s, half, part + p, a, &grid[p]);
    UNROLL for (size_t t = 0; t < n; t++) {
        const uint8_t *at = x.x + t * x.row;
        vb x0 = vb_x(at), x1 = vb_x(at + 16), x2 = vb_x(at + 32), x3 = vb_x(at + 48);
        UNROLL for (size_t p = 0; p < TOGETHER; p++) {
            vi v = vi_dot(vi_dot(sum[p][t], w[p].f0, x0), w[p].f1, x1);
            sum[p][t] = vi_dot(vi_dot(v, w[p].f2, x2), w[p].f3, x3);
        }
    }
}

INLINE void add_products_of_block(const struct source *s, bool half, size_t part,
                                  const struct st_nested_int8_row *rows, int16_t middle,
                                  struct tokens x, size_t n,
                                  vi sum[TOGETHER][ST_NESTED_INT8_TOKENS]) {
    struct grid grid[TOGETHER];
    UNROLL for (size_t p = 0; p < TOGETHER; p++) grid[p] =
        part_grid(s, half, part + p, rows, middle);
    add_products(s, half, part, 0, grid, x, n, sum);
    x.x += ST_NESTED_HALF;
    if (!half) add_products(s, half, part, 1, grid, x, n, sum);
}

// Parts [part, part + TOGETHER) of a panel over all of k. part and n are constants where this is
// called.
INLINE void add_parts(const struct st_nested_weight *w, struct source s, size_t part,
                      const struct st_nested_int8_row *rows, struct tokens x, size_t n,
                      int32_t *sums, size_t sum_row) {
    vi sum[TOGETHER][ST_NESTED_INT8_TOKENS];
    int16_t middle = middle_of(w);
    UNROLL for (size_t p = 0; p < TOGETHER; p++) UNROLL for (size_t t = 0; t < n; t++) sum[p][t] =
        vi_zero();
    for (size_t b = 0; b < st_nested_whole_blocks(w->n_in); b++, next_block(&s)) {
        if (part == 0) prefetch_block(&s);
        add_products_of_block(&s, false, part, rows, middle, x, n, sum);
        x.x += ST_NESTED_BLOCK;
    }
    if (st_nested_whole_blocks(w->n_in) < st_nested_blocks(w->n_in))
        add_products_of_block(&s, true, part, rows, middle, x, n, sum);
    UNROLL for (size_t p = 0; p < TOGETHER; p++) UNROLL for (size_t t = 0; t < n; t++)
        vi_rows(sum[p][t], sums + t * sum_row + (part + p) * LANES);
}

#define TOKENS(n)                                                                                  \
    case n:                                                                                        \
        UNROLL for (size_t part = 0; part < PARTS; part += TOGETHER)                               \
            add_parts(w, s, part, rows, tokens, n, sums, sum_row);                                 \
        break;

void PRODUCT(const struct st_nested_weight *w, const struct st_nested_int8_row *rows, size_t panel,
             const uint8_t *x, size_t x_row, size_t n_tokens, int32_t *sums, size_t sum_row) {
    struct source s = source_of(w, panel);
    struct tokens tokens = {x, x_row};
    rows += panel * ST_NESTED_PANEL;
    switch (n_tokens) {
        TOKENS(1)
        TOKENS(2)
        TOKENS(3)
        TOKENS(4)
    }
}

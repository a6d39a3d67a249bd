// SPDX-License-Identifier: Apache-2.0
// Products of blocks with up to FEW columns, for blocks_body.h: row by row, whose codes are
// unpacked once for all columns; of one column two rows at a time, from two streams (prefetch.h).

enum { FEW = 4 }; // more columns go in groups of so many
#define COLUMN_BY_COLUMN _Pragma("GCC unroll 4")

// Adds one chunk times a column, n_pairs of its pairs.
INLINE void add_chunk(const struct type *t, const struct unpacked *u, size_t n_pairs,
                      const struct st_blocks_chunk *x, sums *sum) {
    if (t->by_16)
        sums_add_16(sum, u->code, u->scales, u->minima, n_pairs, x, t->bits);
    else
        sums_add_32(sum, u->code, u->scale, u->minimum, n_pairs, x, t->bits, t->minima);
}

#ifdef ARRANGED
// Adds n parts of a chunk at b times columns.
INLINE void add_arranged(const struct type *t, const unsigned char *b, size_t n,
                         const struct st_blocks_chunk *x, size_t x_col, size_t n_columns,
                         sums *sum) {
    const bool by_pairs = t->items == ST_BLOCKS_CHUNK;
    struct unpacked u;
    arranged v = t->arrange(b, n);
    part_sums parts[FEW];
    COLUMN_BY_COLUMN for (size_t c = 0; c < n_columns; c++) parts[c] =
        arranged_sums(&v, x + c * x_col, t->bits, by_pairs);
    t->unpack(b, n, PAIRS, &u); // its scales, late, as registers are few
    COLUMN_BY_COLUMN for (size_t c = 0; c < n_columns; c++)
        sums_add_parts(&sum[c], parts[c], u.scale, u.minimum, x + c * x_col, true);
}
#endif

#ifdef TWO_ROWS
// Prefetches share i of two rows. Of those that lie side by side shares are in the order of the
// file: prefetchers of processors follow one stream in a page, not two that take turns.
INLINE void prefetch_rows(const unsigned char *first, const unsigned char *second, size_t i,
                          size_t share) {
    const bool near = (size_t)(second - first) < ST_PREFETCH_AHEAD / 2;
    prefetch(first + (near ? 2 * i : i) * share, share);
    prefetch(near ? first + (2 * i + 1) * share : second + i * share, share);
}
#endif

#if defined ARRANGED && defined TWO_ROWS
// A whole chunk of two rows, times one column.
INLINE void add_arranged_rows(const struct type *t, const unsigned char *first,
                              const unsigned char *second, const struct st_blocks_chunk *x, sums *a,
                              sums *b) {
    struct unpacked u;
    arranged v[2] = {t->arrange(first, ST_BLOCKS_PARTS), t->arrange(second, ST_BLOCKS_PARTS)};
    part_sums parts[2];
    arranged_sums_of_rows(v, x, parts);
    t->unpack(first, ST_BLOCKS_PARTS, PAIRS, &u);
    sums_add_parts(a, parts[0], u.scale, u.minimum, x, true);
    t->unpack(second, ST_BLOCKS_PARTS, PAIRS, &u);
    sums_add_parts(b, parts[1], u.scale, u.minimum, x, true);
}
#endif

// Adds a whole chunk at b times columns.
INLINE void add_whole(const struct type *t, const unsigned char *b, const struct st_blocks_chunk *x,
                      size_t x_col, size_t n_columns, sums *sum) {
    struct unpacked u;
    prefetch(b, t->chunk_bytes);
#ifdef ARRANGED
    if (t->arrange) {
        add_arranged(t, b, ST_BLOCKS_PARTS, x, x_col, n_columns, sum);
        return;
    }
#endif
    t->unpack(b, ST_BLOCKS_PARTS, PAIRS, &u);
    COLUMN_BY_COLUMN for (size_t c = 0; c < n_columns; c++)
        add_chunk(t, &u, PAIRS, x + c * x_col, &sum[c]);
}

// What is left of a row behind its whole chunks: n parts.
INLINE void add_tail(const struct type *t, const unsigned char *b, size_t n, size_t n_pairs,
                     const struct st_blocks_chunk *x, size_t x_col, size_t n_columns, sums *sum) {
    struct unpacked u = {0};
    t->unpack(b, n, n_pairs, &u);
    prefetch(b, n * t->chunk_bytes / ST_BLOCKS_PARTS);
    COLUMN_BY_COLUMN for (size_t c = 0; c < n_columns; c++)
        add_chunk(t, &u, n_pairs, x + c * x_col, &sum[c]);
}

INLINE void add_any_tail(const struct type *t, const unsigned char *b, size_t n,
                         const struct st_blocks_chunk *x, size_t x_col, size_t n_columns,
                         sums *sum) {
    if (n == 0) return;
#ifdef ARRANGED_TAILS
    if (t->arrange && n > 2) { // of two parts, most of that would be for nothing
        prefetch(b, n * t->chunk_bytes / ST_BLOCKS_PARTS);
        add_arranged(t, b, n, x, x_col, n_columns, sum);
        return;
    }
#endif
    if (n <= 2)
        add_tail(t, b, n, 1, x, x_col, n_columns, sum);
    else if (n <= 4)
        add_tail(t, b, n, 2, x, x_col, n_columns, sum);
    else if (n <= 6)
        add_tail(t, b, n, 3, x, x_col, n_columns, sum);
    else
        add_tail(t, b, n, 4, x, x_col, n_columns, sum);
}

INLINE void one_row(const struct type *t, const unsigned char *w, size_t k,
                    const struct st_blocks_chunk *x, size_t n_columns, float *y, size_t y_col) {
    size_t n_chunks = st_blocks_chunks(k), whole = k / ST_BLOCKS_CHUNK;
    sums sum[FEW];
    COLUMN_BY_COLUMN for (size_t c = 0; c < n_columns; c++) sum[c] = sums_zero();
    for (size_t i = 0; i < whole; i++)
        add_whole(t, w + i * t->chunk_bytes, x + i, n_chunks, n_columns, sum);
    if (t->items < ST_BLOCKS_CHUNK)
        add_any_tail(t, w + whole * t->chunk_bytes, k % ST_BLOCKS_CHUNK / ST_BLOCKS_PART, x + whole,
                     n_chunks, n_columns, sum);
    COLUMN_BY_COLUMN for (size_t c = 0; c < n_columns; c++) y[c * y_col] =
        sums_total(&sum[c], t->by_16);
}

#ifdef TWO_ROWS
INLINE void two_rows(const struct type *t, const unsigned char *first, const unsigned char *second,
                     size_t k, const struct st_blocks_chunk *x, float *y, float *y_second) {
    size_t n_chunks = st_blocks_chunks(k), whole = k / ST_BLOCKS_CHUNK;
    two sum = two_zero();
    sums a = sums_zero(), b = sums_zero();
    size_t share = st_ceil_div(k * t->chunk_bytes / ST_BLOCKS_CHUNK, st_max(whole, 1));
    for (size_t i = 0; i < whole; i++) {
        struct unpacked u, v;
        prefetch_rows(first, second, i, share);
#ifdef ARRANGED
        if (t->arrange) {
            add_arranged_rows(t, first + i * t->chunk_bytes, second + i * t->chunk_bytes, x + i, &a,
                              &b);
            continue;
        }
#endif
        t->unpack(first + i * t->chunk_bytes, ST_BLOCKS_PARTS, PAIRS, &u);
        t->unpack(second + i * t->chunk_bytes, ST_BLOCKS_PARTS, PAIRS, &v);
        sum = two_add(sum, u.code, v.code, two_halves(u.scale, v.scale),
                      two_halves(u.minimum, v.minimum), PAIRS, x + i);
    }
    if (!t->arrange) two_split(sum, &a, &b);
    if (t->items < ST_BLOCKS_CHUNK) {
        size_t n = k % ST_BLOCKS_CHUNK / ST_BLOCKS_PART;
        add_any_tail(t, first + whole * t->chunk_bytes, n, x + whole, n_chunks, 1, &a);
        add_any_tail(t, second + whole * t->chunk_bytes, n, x + whole, n_chunks, 1, &b);
    }
    *y = sums_total(&a, false);
    *y_second = sums_total(&b, false);
}
#endif

INLINE void pair_of_rows(const struct type *t, const unsigned char *first,
                         const unsigned char *second, size_t k, const struct st_blocks_chunk *x,
                         float *y, float *y_second) {
#ifdef TWO_ROWS
    if (!t->by_16) {
        two_rows(t, first, second, k, x, y, y_second);
        return;
    }
#endif
    one_row(t, first, k, x, 1, y, 1);
    one_row(t, second, k, x, 1, y_second, 1);
}

#ifdef SHARED_TAILS
#include "kernels/blocks_shared.h"
#endif

// Rows times one column.
INLINE void stream_rows(const struct type *t, const unsigned char *w, size_t row_bytes,
                        size_t n_rows, size_t k, const struct st_blocks_chunk *x, float *y) {
    size_t half = st_stream_rows(n_rows, row_bytes);
    size_t r = 0;
    for (; r < half; r++)
        pair_of_rows(t, w + r * row_bytes, w + (half + r) * row_bytes, k, x, y + r, y + half + r);
    for (r = 2 * half; r + 2 <= n_rows; r += 2)
        pair_of_rows(t, w + r * row_bytes, w + (r + 1) * row_bytes, k, x, y + r, y + r + 1);
    if (r < n_rows) one_row(t, w + r * row_bytes, k, x, 1, y + r, 1);
}

#define COLUMNS(n)                                                                                 \
    case n:                                                                                        \
        for (; r < n_rows; r++) one_row(t, w + r * row_bytes, k, x, n, y + r, y_col);              \
        break;
// Up to FEW columns.
INLINE void few_columns(const struct type *t, const unsigned char *w, size_t row_bytes,
                        size_t n_rows, size_t k, const struct st_blocks_chunk *x, size_t n_columns,
                        float *y, size_t y_col) {
    size_t r = 0;
#ifdef SHARED_TAILS
    r = share_chunks(t, w, row_bytes, n_rows, k, x, n_columns, y, y_col);
#endif
    switch (n_columns) {
    case 1:
        stream_rows(t, w + r * row_bytes, row_bytes, n_rows - r, k, x, y + r);
        break;
        COLUMNS(2)
        COLUMNS(3)
        COLUMNS(4)
    }
}

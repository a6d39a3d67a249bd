// SPDX-License-Identifier: Apache-2.0
// Products of blocks with several columns, for blocks_body.h. The codes of LANES rows are
// transposed once for all columns, so that a lane has a row: sums of a part need no additions
// across lanes, and a part costs a conversion and a multiply-add for LANES rows. Codes of most
// types are transposed while they are packed (blocks_packed.h), others row by row once they are
// unpacked.
//
// The including file has: lanes, a vector of LANES times 4 codes; dots, exact sums of one part for
// LANES rows; floats, a vector of LANES floats; TOGETHER, so many columns have their sums in
// registers, at most 8; PANEL_COLUMNS, from which on panels are faster; dots_add(), which adds 4
// codes of each row times the 4 elements from 4 (first + i) on, where first is that of a part or
// half and i a constant; transpose(), for LANES rows of 4 LANES bytes; TRANSPOSE_CODES where its
// dots_add() takes codes in another order; and perhaps PACKED and what blocks_packed.h needs.
#ifndef TRANSPOSE_CODES
#define TRANSPOSE_CODES transpose
#endif

enum {
    PART_GROUPS = ST_BLOCKS_PART / 4,
    MAX_PARTS = 2 * ST_BLOCKS_PARTS, // of a chunk, or halves of them
};

struct panel {
    _Alignas(64) unsigned char code[ST_BLOCKS_CHUNK / 4][LANES][4];
    _Alignas(64) float scale[MAX_PARTS][LANES];
    _Alignas(64) float minimum[MAX_PARTS][LANES];
    const unsigned char *next; // of the next LANES rows, as many bytes as the panel has
    size_t next_bytes;         // for each part
};

// Of a chunk.
INLINE size_t parts_of(bool by_16) {
    return by_16 ? MAX_PARTS : ST_BLOCKS_PARTS;
}

// ---- Panels times columns: the same for all types with equally many bits

// Part `part` of a panel, or half-part, times n_columns columns, a constant where this is called.
INLINE void add_part(const struct panel *p, size_t part, bool by_16, int bits, bool minima,
                     const struct st_blocks_chunk *x, size_t x_col, size_t n_columns, float *acc) {
    const size_t n_groups = by_16 ? PART_GROUPS / 2 : PART_GROUPS, first = part * n_groups;
    dots d[TOGETHER];
    UNROLLED for (size_t c = 0; c < n_columns; c++) d[c] = dots_zero();
    UNROLLED for (size_t i = 0; i < n_groups; i++) {
        lanes w = lanes_load(p->code[first + i]);
        UNROLLED for (size_t c = 0; c < n_columns; c++)
            dots_add(&d[c], w, x + c * x_col, first, i, bits);
    }
    UNROLLED for (size_t c = 0; c < n_columns; c++) {
        const struct st_blocks_chunk *of = x + c * x_col;
        float *at = acc + (c * parts_of(by_16) + part) * LANES;
        floats scale = floats_set1(of->scale[by_16 ? part / 2 : part]);
        floats sum = floats_fma(dots_total(&d[c], bits),
                                floats_mul(floats_load(p->scale[part]), scale), floats_load(at));
        if (minima)
            sum = floats_fnma(floats_load(p->minimum[part]),
                              floats_set1((by_16 ? of->half_sum : of->sum)[part]), sum);
        floats_store(at, sum);
    }
}

// ahead: prefetches what the next panel is made of, beside each part a share of it, as loads wait
// for many prefetches at once.
INLINE void add_columns(const struct panel *p, size_t n_parts, bool by_16, int bits, bool minima,
                        const struct st_blocks_chunk *x, size_t x_col, size_t n_columns, bool ahead,
                        float *acc) {
    for (size_t part = 0; part < n_parts; part++) {
        if (ahead) st_prefetch_soon(p->next + part * p->next_bytes, p->next_bytes);
        add_part(p, part, by_16, bits, minima, x, x_col, n_columns, acc);
    }
}

// acc[n_columns, parts_of(), LANES] += the first n_parts of a panel times columns x_col apart.
typedef void add_fn(const struct panel *p, size_t n_parts, const struct st_blocks_chunk *x,
                    size_t x_col, size_t n_columns, float *acc);

// Up to TOGETHER columns.
INLINE void add_some(const struct panel *p, size_t n_parts, bool by_16, int bits, bool minima,
                     const struct st_blocks_chunk *x, size_t x_col, size_t n_columns, bool ahead,
                     float *acc) {
    switch (n_columns) {
#define SOME(n)                                                                                    \
    case n:                                                                                        \
        if (n <= TOGETHER) add_columns(p, n_parts, by_16, bits, minima, x, x_col, n, ahead, acc);  \
        break;
        SOME(1)
        SOME(2)
        SOME(3)
        SOME(4)
        SOME(5)
        SOME(6)
        SOME(7)
        SOME(8)
#undef SOME
    }
}

#define ADD(kind, by_16, bits, minima)                                                             \
    static __attribute__((noinline)) void add_##kind(const struct panel *p, size_t n_parts,        \
                                                     const struct st_blocks_chunk *x,              \
                                                     size_t x_col, size_t n_columns, float *acc) { \
        size_t together = st_ceil_div(n_columns, st_ceil_div(n_columns, TOGETHER));                \
        for (size_t c = 0; c < n_columns; c += together)                                           \
            add_some(p, n_parts, by_16, bits, minima, x + c * x_col, x_col,                        \
                     st_min(together, n_columns - c), c == 0, acc + c * parts_of(by_16) * LANES);  \
    }

ADD(parts_of_4_bits, false, 4, true)
ADD(parts_of_5_bits, false, 5, true)
ADD(parts_of_8_bits, false, 8, !SIGNED_CODES)
ADD(halves_of_4_bits, true, 4, true)
ADD(halves_of_6_bits, true, 6, true)

// ---- Making panels

// One row of a panel before it is transposed.
struct panel_row {
    _Alignas(64) unsigned char code[ST_BLOCKS_CHUNK]; // unless the type's are packed
    float scale[MAX_PARTS], minimum[MAX_PARTS];
};

// n parts of a chunk at b; n_pairs as for unpack_fn.
INLINE void unpack_row(const struct type *t, const unsigned char *b, size_t n, size_t n_pairs,
                       struct panel_row *to) {
    struct unpacked u;
    t->unpack(b, n, n_pairs, &u);
    if (!t->pack)
        UNROLLED for (size_t i = 0; i < n_pairs; i++) codes_store(to->code + 64 * i, u.code[i]);
    if (t->by_16) {
        wide_store(to->scale, u.scales);
        wide_store(to->minimum, u.minima);
    } else {
        halves_store(to->scale, u.scale);
        halves_store(to->minimum, u.minimum);
    }
}

INLINE void unpack_any_row(const struct type *t, const unsigned char *b, size_t n,
                           struct panel_row *to) {
    if (n > 6 || t->items == ST_BLOCKS_CHUNK)
        unpack_row(t, b, n, 4, to);
    else if (n > 4)
        unpack_row(t, b, n, 3, to);
    else if (n > 2)
        unpack_row(t, b, n, 2, to);
    else
        unpack_row(t, b, n, 1, to);
}

typedef void transpose_fn(const unsigned char *from, size_t row_bytes, unsigned char *to);

INLINE void transpose_all(transpose_fn *fn, const void *from, size_t bytes, void *to) {
    for (size_t i = 0; i < bytes; i += 4 * LANES)
        fn((const unsigned char *)from + i, sizeof(struct panel_row),
           (unsigned char *)to + i * LANES);
}

// n parts of a chunk at b, of LANES rows, row by row.
INLINE void unpack_panel(const struct type *t, const unsigned char *b, size_t row_bytes, size_t n,
                         struct panel *to) {
    struct panel_row row[LANES];
    for (size_t r = 0; r < LANES; r++) {
        if (n == ST_BLOCKS_PARTS)
            unpack_row(t, b + r * row_bytes, ST_BLOCKS_PARTS, PAIRS, &row[r]);
        else
            unpack_any_row(t, b + r * row_bytes, n, &row[r]);
    }
    size_t parts = parts_of(t->by_16);
    if (!t->pack) transpose_all(TRANSPOSE_CODES, row->code, n * ST_BLOCKS_PART, to->code);
    transpose_all(transpose, row->scale, parts * sizeof(float), to->scale);
    if (t->minima) transpose_all(transpose, row->minimum, parts * sizeof(float), to->minimum);
}

INLINE void make_panel(const struct type *t, const unsigned char *b, size_t row_bytes, size_t n,
                       struct panel *to) {
    if (!t->pack || !t->pack(b, row_bytes, n, to)) unpack_panel(t, b, row_bytes, n, to);
}

// ---- Rows

// As sums_total, for LANES rows.
INLINE floats parts_total(const float *acc, bool by_16) {
    floats v[ST_BLOCKS_PARTS];
    UNROLLED for (size_t i = 0; i < ST_BLOCKS_PARTS; i++) {
        v[i] = floats_load(acc + i * LANES);
        if (by_16) v[i] = floats_add(v[i], floats_load(acc + (i + ST_BLOCKS_PARTS) * LANES));
    }
    UNROLLED for (size_t n = ST_BLOCKS_PARTS / 2; n > 0; n /= 2)
        UNROLLED for (size_t i = 0; i < n; i++) v[i] = floats_add(v[i], v[i + n]);
    return v[0];
}

INLINE void panel_rows(const struct type *t, add_fn *add, const unsigned char *w, size_t row_bytes,
                       size_t k, const struct st_blocks_chunk *x, size_t n_columns, float *y,
                       size_t y_col) {
    _Alignas(64) float acc[ST_BLOCKS_MAX_COLUMNS * MAX_PARTS * LANES];
    size_t n_chunks = st_blocks_chunks(k), step = parts_of(t->by_16) * LANES;
    struct panel panel;
    panel.next = w + LANES * row_bytes;
    panel.next_bytes = st_ceil_div(LANES * row_bytes, k / ST_BLOCKS_PART * (t->by_16 ? 2 : 1));
    memset(acc, 0, n_columns * step * sizeof *acc);
    for (size_t i = 0; i < n_chunks; i++) {
        size_t n = st_min(ST_BLOCKS_CHUNK, k - i * ST_BLOCKS_CHUNK) / ST_BLOCKS_PART;
        make_panel(t, w + i * t->chunk_bytes, row_bytes, n, &panel);
        add(&panel, t->by_16 ? 2 * n : n, x + i, n_chunks, n_columns, acc);
        panel.next += parts_of(t->by_16) * panel.next_bytes;
    }
    for (size_t c = 0; c < n_columns; c++)
        floats_store(y + c * y_col, parts_total(acc + c * step, t->by_16));
}

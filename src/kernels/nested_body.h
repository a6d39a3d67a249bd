// SPDX-License-Identifier: Apache-2.0
// Nested weights for one instruction set, which defines before it includes this:
//   vb, vi, vf        bytes, 32-bit sums and floats of LANES rows, 16 bytes each
//   vb_load, vb_shl, vb_shr (zeros or neighbours' bits come in), vb_and, vb_select (bits of a where
//   the mask's are 1, else of b), vb_lookup (per lane), vb_equal, vb_x (16 bytes to every lane)
//   vi_start, vi_dot, vf_zero, vf_add_scaled, vf_rows
//   vb_rows           LANES rows of 4, 8 or 16 bytes at the start of their lanes
//   FLIP              0x80 where vi_dot() wants centroids without sign, else 0
#include "kernels/prefetch.h"
#include "kernels/nested_rows.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

enum {
    PARTS = ST_NESTED_PANEL / LANES, // registers of a vector of a panel
    PART_BYTES = 16 * LANES,
    AT_ONCE = ST_NESTED_GROUP,
    TOGETHER = LANES == 4 ? 2 : 1, // parts that share a token's loads
    TABLES_AHEAD = 4,              // panels
    MAX_TABLES = 1 << (ST_NESTED_HIGHEST - 4),
};

// What is read of a panel at a precision.
struct source {
    size_t panel, n_blocks;
    const uint8_t *pairs, *planes[ST_NESTED_HIGHEST - 2];
    const uint8_t (*tables)[ST_NESTED_PANEL * 16]; // in the order of the indices below
};

// The index of a shuffle has a code's two top bits below the two that follow. With fewer bits the
// others may hold anything: the table repeats itself. Of two bits each, an index has two codes, and
// a table for either. Entries of a row's table in that order:
static const uint8_t sorted[3][2][16] = {
    {{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3},
     {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}},
    {{0, 2, 4, 6, 1, 3, 5, 7, 0, 2, 4, 6, 1, 3, 5, 7}},
    {{0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15}},
};

// Table i of the rows of a part of a panel, of codes of at most four bits.
INLINE vb few_table(const struct st_nested_weight *w, unsigned bits, size_t row, size_t i) {
    vb rows = vb_rows(st_nested_table(w, row, bits), bits);
    return vb_xor(vb_lookup(rows, vb_x(sorted[bits - 2][i])), FLIP);
}

static void load_many_tables(const struct st_nested_weight *w, unsigned bits, size_t panel,
                             uint8_t tables[][ST_NESTED_PANEL * 16]) {
    for (size_t r = 0; r < ST_NESTED_PANEL; r++) {
        const int8_t *from = st_nested_table(w, panel * ST_NESTED_PANEL + r, bits);
        for (unsigned i = 0; i < 1u << (bits - 4); i++)
            for (unsigned index = 0; index < 16; index++) {
                unsigned code = (unsigned)sorted[2][0][index] << (bits - 4) | i;
                tables[i][16 * r + index] = (uint8_t)from[code] ^ FLIP;
            }
    }
}

INLINE struct source source_of(const struct st_nested_weight *w, unsigned bits, size_t panel,
                               uint8_t tables[][ST_NESTED_PANEL * 16]) {
    size_t n_blocks = st_nested_blocks(w->n_in), blocks = panel * n_blocks;
    size_t plane_bytes = st_nested_code_bytes(w->n_out, w->n_in, 1);
    struct source s = {.panel = panel,
                       .n_blocks = n_blocks,
                       .pairs = w->codes + blocks * ST_NESTED_PAIRS,
                       .tables = tables};
    for (unsigned b = 2; b < bits; b++)
        s.planes[b - 2] = w->codes + b * plane_bytes + blocks * ST_NESTED_PLANE;
    return s;
}

INLINE void next_panel(unsigned bits, struct source *s) {
    s->panel++;
    s->pairs += s->n_blocks * ST_NESTED_PAIRS;
    for (unsigned b = 2; b < bits; b++) s->planes[b - 2] += s->n_blocks * ST_NESTED_PLANE;
}

// Of the vectors 4 a + f of a block, f = 0 .. 3. Not an array, which would live in memory.
struct four {
    vb f0, f1, f2, f3;
};

// Four indices: low has the codes' third bits (and the fourth ones above them) where pair has the
// top two.
INLINE struct four indices(vb pair, vb low) {
    vb even = vb_select(0x33, pair, vb_shl(low, 2)), odd = vb_select(0x33, vb_shr(pair, 2), low);
    return (struct four){vb_and(even, 15), vb_and(odd, 15), vb_and(vb_shr(even, 4), 15),
                         vb_and(vb_shr(odd, 4), 15)};
}

// Where a part of a panel is read, block after block.
struct reader {
    const uint8_t *pairs, *third, *fourth;
    const struct source *source;
    size_t part, block;
};

// Centroids: of codes of two bits,
INLINE struct four two_bit_values(const struct reader *r, unsigned a, vb table0, vb table1) {
    vb pair = vb_load(r->pairs + a * ST_NESTED_PLANE);
    vb first = vb_and(pair, 15), second = vb_and(vb_shr(pair, 4), 15);
    return (struct four){vb_lookup(table0, first), vb_lookup(table1, first),
                         vb_lookup(table0, second), vb_lookup(table1, second)};
}

// of three or four,
INLINE struct four few_values(unsigned bits, const struct reader *r, unsigned a, vb table) {
    vb pair = vb_load(r->pairs + a * ST_NESTED_PLANE), low = vb_load(r->third);
    if (bits == 3 && a) low = vb_shr(low, 1);
    if (bits == 4 && a) low = vb_select(0x55, vb_shr(low, 1), vb_load(r->fourth));
    if (bits == 4 && !a) low = vb_select(0x55, low, vb_shl(vb_load(r->fourth), 1));
    struct four i = indices(pair, low);
    return (struct four){vb_lookup(table, i.f0), vb_lookup(table, i.f1), vb_lookup(table, i.f2),
                         vb_lookup(table, i.f3)};
}

// of more: the bits past the fourth choose among tables.
static vb many_value(unsigned bits, const struct reader *r, unsigned bit, vb index) {
    vb table = vb_and(index, 0), value = table;
    for (unsigned b = 4; b < bits; b++) {
        size_t at = r->block * ST_NESTED_PLANE + r->part * PART_BYTES;
        vb plane = vb_load(r->source->planes[b - 2] + at);
        for (unsigned i = 0; i < bit; i++) plane = vb_shr(plane, 1);
        table = vb_select(1, plane, vb_shl(table, 1));
    }
    for (unsigned i = 0; i < 1u << (bits - 4); i++) {
        vb one = vb_lookup(vb_load(r->source->tables[i] + r->part * PART_BYTES), index);
        value = vb_blend(value, one, vb_equal(table, (uint8_t)i));
    }
    return value;
}

INLINE struct four many_values(unsigned bits, const struct reader *r, unsigned a) {
    vb pair = vb_load(r->pairs + a * ST_NESTED_PLANE);
    vb third = vb_load(r->third), fourth = vb_load(r->fourth);
    struct four i = indices(pair, a ? vb_select(0x55, vb_shr(third, 1), fourth)
                                    : vb_select(0x55, third, vb_shl(fourth, 1)));
    return (struct four){many_value(bits, r, a, i.f0), many_value(bits, r, a + 2, i.f1),
                         many_value(bits, r, a + 4, i.f2), many_value(bits, r, a + 6, i.f3)};
}

// Panels follow each other, so what lies ahead is needed soon.
INLINE void prefetch(unsigned bits, const struct reader *r) {
    if (r->part * PART_BYTES % ST_CACHE_LINE) return;
    st_prefetch(r->pairs, 1);
    st_prefetch(r->pairs + ST_NESTED_PLANE, 1);
    if (bits > 2) st_prefetch(r->third, 1);
    if (bits > 3) st_prefetch(r->fourth, 1);
}

// Tables are a stream of their own, of which a panel takes a few lines at once.
INLINE void ask_tables(const struct st_nested_weight *w, unsigned bits, size_t panel) {
    const int8_t *tables = st_nested_table(w, panel * ST_NESTED_PANEL, bits);
    size_t bytes = (size_t)ST_NESTED_PANEL << bits;
    for (size_t at = 0; at < bytes; at += ST_CACHE_LINE) __builtin_prefetch(tables + at, 0, 3);
    __builtin_prefetch(tables + bytes - 1, 0, 3);
}

INLINE struct reader reader_of(unsigned bits, const struct source *s, size_t part) {
    struct reader r = {.pairs = s->pairs + part * PART_BYTES, .source = s, .part = part};
    if (bits > 2) r.third = s->planes[0] + part * PART_BYTES;
    if (bits > 3) r.fourth = s->planes[1] + part * PART_BYTES;
    return r;
}

INLINE void next_block(unsigned bits, struct reader *r) {
    r->block++;
    r->pairs += ST_NESTED_PAIRS;
    if (bits > 2) r->third += ST_NESTED_PLANE;
    if (bits > 3) r->fourth += ST_NESTED_PLANE;
}

INLINE struct four values(unsigned bits, const struct reader *r, unsigned a, vb table0, vb table1) {
    return bits == 2   ? two_bit_values(r, a, table0, table1)
           : bits <= 4 ? few_values(bits, r, a, table0)
                       : many_values(bits, r, a);
}

// sum[p][t] of parts [part, part + TOGETHER) of a panel and n tokens, of which x holds a group.
INLINE void add_parts(const struct st_nested_weight *w, unsigned bits, const struct source *s,
                      size_t part, const struct st_nested_input *x, size_t n,
                      vf sum[TOGETHER][AT_ONCE]) {
    struct reader r[TOGETHER];
    vb table0[TOGETHER], table1[TOGETHER];
    const int8_t *q = x->q;
    const float *scale = x->scale;
    const int32_t *offset = x->offsets;
    UNROLL for (size_t p = 0; p < TOGETHER; p++) {
        size_t row = s->panel * ST_NESTED_PANEL + (part + p) * LANES;
        r[p] = reader_of(bits, s, part + p);
        table0[p] = bits <= 4 ? few_table(w, bits, row, 0) : vb_load(s->tables[0]);
        table1[p] = bits == 2 ? few_table(w, bits, row, 1) : table0[p];
        UNROLL for (size_t t = 0; t < n; t++) sum[p][t] = vf_zero();
    }
    for (size_t block = 0; block < s->n_blocks; block++) {
        vi exact[TOGETHER][AT_ONCE];
        UNROLL for (size_t p = 0; p < TOGETHER; p++) {
            prefetch(bits, &r[p]);
            UNROLL for (size_t t = 0; t < n; t++) exact[p][t] = vi_start(offset[t]);
        }
        UNROLL for (unsigned a = 0; a < 2; a++) {
            struct four v[TOGETHER];
            UNROLL for (size_t p = 0; p < TOGETHER; p++) v[p] =
                values(bits, &r[p], a, table0[p], table1[p]);
            UNROLL for (size_t t = 0; t < n; t++) {
                const int8_t *x4 = q + t * ST_NESTED_BLOCK + 64 * a;
                vb x0 = vb_x(x4), x1 = vb_x(x4 + 16), x2 = vb_x(x4 + 32), x3 = vb_x(x4 + 48);
                UNROLL for (size_t p = 0; p < TOGETHER; p++) {
                    exact[p][t] = vi_dot(exact[p][t], v[p].f0, x0);
                    exact[p][t] = vi_dot(exact[p][t], v[p].f1, x1);
                    exact[p][t] = vi_dot(exact[p][t], v[p].f2, x2);
                    exact[p][t] = vi_dot(exact[p][t], v[p].f3, x3);
                }
            }
        }
        UNROLL for (size_t p = 0; p < TOGETHER; p++) {
            UNROLL for (size_t t = 0; t < n; t++) sum[p][t] =
                vf_add_scaled(sum[p][t], exact[p][t], scale[t]);
            next_block(bits, &r[p]);
        }
        q += n * ST_NESTED_BLOCK;
        scale += n;
        offset += n;
    }
}

// n is a constant where this is called.
INLINE void add_panel(const struct st_nested_weight *w, unsigned bits, const struct source *s,
                      const struct st_nested_input *x, size_t n, float *y, size_t y_row) {
    for (size_t part = 0; part < PARTS; part += TOGETHER) {
        vf sum[TOGETHER][AT_ONCE];
        add_parts(w, bits, s, part, x, n, sum);
        UNROLL for (size_t p = 0; p < TOGETHER; p++) UNROLL for (size_t t = 0; t < n; t++) {
            size_t row = s->panel * ST_NESTED_PANEL + (part + p) * LANES;
            float rows[LANES], *to = y + t * y_row + row;
            vf_rows(sum[p][t], rows);
            if (row + LANES <= w->n_out)
                UNROLL for (size_t i = 0; i < LANES; i++) to[i] = rows[i] * w->scale[row + i];
            else
                for (size_t i = 0; row + i < w->n_out; i++) to[i] = rows[i] * w->scale[row + i];
        }
    }
}

#define TOKENS(n)                                                                                  \
    case n:                                                                                        \
        add_panel(w, bits, &s, &group, n, y + t * y_row, y_row);                                   \
        break;

INLINE void at_precision(const struct st_nested_weight *w, unsigned bits,
                         const struct st_nested_input *x, size_t panel0, size_t panel1, float *y,
                         size_t y_row) {
    uint8_t tables[MAX_TABLES][ST_NESTED_PANEL * 16];
    struct source s = source_of(w, bits, panel0, tables);
    for (size_t i = 0; i < TABLES_AHEAD; i++) ask_tables(w, bits, panel0 + i);
    for (; s.panel < panel1; next_panel(bits, &s)) {
        ask_tables(w, bits, s.panel + TABLES_AHEAD);
        if (bits > 4) load_many_tables(w, bits, s.panel, tables);
        for (size_t t = 0; t < x->n_tokens; t += ST_NESTED_GROUP) {
            struct st_nested_input group = st_nested_group(x, w->n_in, t);
            switch (group.n_tokens) {
                TOKENS(1)
                TOKENS(2)
                TOKENS(3)
                TOKENS(4)
            }
        }
    }
}

void NAME(const struct st_nested_weight *w, unsigned bits, const struct st_nested_input *x,
          size_t panel0, size_t panel1, float *y, size_t y_row) {
    if (bits == 2)
        at_precision(w, 2, x, panel0, panel1, y, y_row);
    else if (bits == 3)
        at_precision(w, 3, x, panel0, panel1, y, y_row);
    else if (bits == 4)
        at_precision(w, 4, x, panel0, panel1, y, y_row);
    else
        at_precision(w, bits > 5 ? bits : 5, x, panel0, panel1, y, y_row);
}

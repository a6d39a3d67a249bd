// SPDX-License-Identifier: Apache-2.0
// Nested weights for one instruction set, which defines before it includes this:
//   vb, vi, vf        bytes, 32-bit sums and floats of LANES rows, 16 bytes each
//   vb_load, vb_shl, vb_shr (zeros or neighbours' bits come in), vb_and, vb_select (bits of a where
//   the mask's are 1, else of b), vb_lookup (per lane), vb_x (16 bytes to every lane)
//   vs, vs_load       LANES rows' scales of a block's four groups
//   vi_zero, vi_add   scale of group g * (v0 . x0 + v1 . x1) added, codes of at most `bits` bits
//   vf_zero, vf_add_scaled, vf_rows
//   vm, vm_zero, vm_add (a block's minima of 8 rows times its sums of q), vm_rows
#include "kernels/prefetch.h"
#include "kernels/nested_rows.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

enum {
    PARTS = ST_NESTED_PANEL / LANES, // registers of a vector of a panel
    PART_BYTES = 16 * LANES,
    AT_ONCE = ST_NESTED_TOKENS,
    TOGETHER = LANES == 4 ? 2 : 1, // parts that share a token's loads
};

// What is read of a panel at a precision.
struct source {
    size_t panel, n_blocks;
    const uint8_t *pairs, *planes[ST_NESTED_HIGHEST - 2], *groups;
};

// The index of a shuffle has a code's two top bits below the two that follow. With fewer bits the
// others may hold anything: the table repeats itself. Of two bits each, an index has two codes, and
// a table for either. Codes in that order:
static const uint8_t codes_of[3][2][16] = {
    {{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3},
     {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}},
    {{0, 2, 4, 6, 1, 3, 5, 7, 0, 2, 4, 6, 1, 3, 5, 7}},
    {{0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15}},
};

INLINE struct source source_of(const struct st_nested_weight *w, unsigned bits, size_t panel) {
    size_t n_blocks = st_nested_blocks(w->n_in), blocks = panel * n_blocks;
    struct source s = {.panel = panel,
                       .n_blocks = n_blocks,
                       .pairs = st_nested_plane(w, 2) + blocks * ST_NESTED_PAIRS,
                       .groups = w->groups[bits] + blocks * ST_NESTED_GROUP_BYTES};
    for (unsigned b = 2; b < bits; b++)
        s.planes[b - 2] = st_nested_plane(w, b + 1) + blocks * ST_NESTED_PLANE;
    return s;
}

INLINE void next_panel(unsigned bits, struct source *s) {
    s->panel++;
    s->pairs += s->n_blocks * ST_NESTED_PAIRS;
    s->groups += s->n_blocks * ST_NESTED_GROUP_BYTES;
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
    const uint8_t *pairs, *third, *fourth, *groups;
    const struct source *source;
    size_t part, block;
};

// Codes of two bits,
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

// of more: the bits past the fourth follow one by one.
INLINE vb many_value(unsigned bits, const struct reader *r, unsigned bit, vb value) {
    for (unsigned b = 4; b < bits; b++) {
        size_t at = r->block * ST_NESTED_PLANE + r->part * PART_BYTES;
        vb plane = vb_load(r->source->planes[b - 2] + at);
        for (unsigned i = 0; i < bit; i++) plane = vb_shr(plane, 1);
        value = vb_select(1, plane, vb_shl(value, 1));
    }
    return value;
}

INLINE struct four many_values(unsigned bits, const struct reader *r, unsigned a, vb table) {
    struct four top = few_values(4, r, a, table);
    return (struct four){many_value(bits, r, a, top.f0), many_value(bits, r, a + 2, top.f1),
                         many_value(bits, r, a + 4, top.f2), many_value(bits, r, a + 6, top.f3)};
}

// Panels follow each other, so what lies ahead is needed soon.
INLINE void prefetch(unsigned bits, const struct reader *r) {
    if (r->part * PART_BYTES % ST_CACHE_LINE) return;
    st_prefetch(r->pairs, 1);
    st_prefetch(r->pairs + ST_NESTED_PLANE, 1);
    if (bits > 2) st_prefetch(r->third, 1);
    if (bits > 3) st_prefetch(r->fourth, 1);
    st_prefetch(r->groups, 1);
}

INLINE struct reader reader_of(unsigned bits, const struct source *s, size_t part) {
    struct reader r = {.pairs = s->pairs + part * PART_BYTES, .source = s, .part = part};
    r.groups = s->groups + part * LANES * ST_NESTED_GROUPS;
    if (bits > 2) r.third = s->planes[0] + part * PART_BYTES;
    if (bits > 3) r.fourth = s->planes[1] + part * PART_BYTES;
    return r;
}

INLINE void next_block(unsigned bits, struct reader *r) {
    r->block++;
    r->pairs += ST_NESTED_PAIRS;
    r->groups += ST_NESTED_GROUP_BYTES;
    if (bits > 2) r->third += ST_NESTED_PLANE;
    if (bits > 3) r->fourth += ST_NESTED_PLANE;
}

INLINE struct four values(unsigned bits, const struct reader *r, unsigned a, vb table0, vb table1) {
    return bits == 2   ? two_bit_values(r, a, table0, table1)
           : bits <= 4 ? few_values(bits, r, a, table0)
                       : many_values(bits, r, a, table0);
}

// Sums over k of the codes times their scales, of TOGETHER parts and n tokens, of which x holds
// those side by side.
INLINE void add_parts(unsigned bits, const struct source *s, size_t part,
                      const struct st_nested_input *x, size_t n, vf sum[TOGETHER][AT_ONCE]) {
    struct reader r[TOGETHER];
    const uint8_t(*codes)[16] = codes_of[bits <= 4 ? bits - 2 : 2];
    vb table0 = vb_x(codes[0]), table1 = vb_x(codes[bits == 2]);
    const int8_t *q = x->q;
    const float *scale = x->scale;
    UNROLL for (size_t p = 0; p < TOGETHER; p++) {
        r[p] = reader_of(bits, s, part + p);
        UNROLL for (size_t t = 0; t < n; t++) sum[p][t] = vf_zero();
    }
    for (size_t block = 0; block < s->n_blocks; block++) {
        vi exact[TOGETHER][AT_ONCE];
        vs scales[TOGETHER];
        UNROLL for (size_t p = 0; p < TOGETHER; p++) {
            prefetch(bits, &r[p]);
            scales[p] = vs_load(r[p].groups);
            UNROLL for (size_t t = 0; t < n; t++) exact[p][t] = vi_zero();
        }
        UNROLL for (unsigned a = 0; a < 2; a++) {
            struct four v[TOGETHER];
            UNROLL for (size_t p = 0; p < TOGETHER; p++) v[p] =
                values(bits, &r[p], a, table0, table1);
            UNROLL for (size_t t = 0; t < n; t++) {
                const int8_t *x4 = q + t * ST_NESTED_BLOCK + 64 * a;
                vb x0 = vb_x(x4), x1 = vb_x(x4 + 16), x2 = vb_x(x4 + 32), x3 = vb_x(x4 + 48);
                UNROLL for (size_t p = 0; p < TOGETHER; p++) {
                    vi e = vi_add(exact[p][t], bits, scales[p], 2 * a, v[p].f0, x0, v[p].f1, x1);
                    exact[p][t] = vi_add(e, bits, scales[p], 2 * a + 1, v[p].f2, x2, v[p].f3, x3);
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
    }
}

// Sums over k of the groups' minima times the inputs' sums, of a panel and n tokens.
INLINE void add_minima(const struct source *s, const struct st_nested_input *x, size_t n,
                       float rows[AT_ONCE][ST_NESTED_PANEL]) {
    vm sum[AT_ONCE];
    UNROLL for (size_t t = 0; t < n; t++) sum[t] = vm_zero();
    for (size_t b = 0; b < s->n_blocks; b++) {
        const uint8_t *minima = s->groups + b * ST_NESTED_GROUP_BYTES + ST_NESTED_GROUP_BYTES / 2;
        const int16_t *sums = x->sums + b * n * ST_NESTED_GROUPS;
        UNROLL for (size_t t = 0; t < n; t++) sum[t] =
            vm_add(sum[t], minima, sums + t * ST_NESTED_GROUPS, x->scale[b * n + t]);
    }
    UNROLL for (size_t t = 0; t < n; t++) vm_rows(sum[t], rows[t]);
}

// n is a constant where this is called.
INLINE void add_panel(const struct st_nested_weight *w, unsigned bits, const struct source *s,
                      const struct st_nested_input *x, size_t n, float *y, size_t y_row) {
    float minima[AT_ONCE][ST_NESTED_PANEL], codes[AT_ONCE][ST_NESTED_PANEL];
    for (size_t part = 0; part < PARTS; part += TOGETHER) {
        vf sum[TOGETHER][AT_ONCE];
        add_parts(bits, s, part, x, n, sum);
        UNROLL for (size_t p = 0; p < TOGETHER; p++) UNROLL for (size_t t = 0; t < n; t++)
            vf_rows(sum[p][t], codes[t] + (part + p) * LANES);
    }
    add_minima(s, x, n, minima);
    size_t first = s->panel * ST_NESTED_PANEL, rows = st_min(ST_NESTED_PANEL, w->n_out - first);
    const struct st_nested_row *row = st_nested_row(w, bits, first);
    for (size_t t = 0; t < n; t++)
        for (size_t r = 0; r < rows; r++)
            codes[t][r] = codes[t][r] * row[r].scale + minima[t][r] * row[r].minimum;
    for (size_t t = 0; t < n; t += x->terms, y += y_row)
        for (size_t r = 0; r < rows; r++)
            y[first + r] = x->terms == 1 ? codes[t][r] : codes[t][r] + codes[t + 1][r];
}

#define TOKENS(n)                                                                                  \
    case n:                                                                                        \
        add_panel(w, bits, &s, &group, n, y + t / x->terms * y_row, y_row);                        \
        break;

INLINE void at_precision(const struct st_nested_weight *w, unsigned bits,
                         const struct st_nested_input *x, size_t panel0, size_t panel1, float *y,
                         size_t y_row) {
    struct source s = source_of(w, bits, panel0);
    for (; s.panel < panel1; next_panel(bits, &s)) {
        for (size_t t = 0; t < x->n_tokens; t += ST_NESTED_TOKENS) {
            struct st_nested_input group = st_nested_from(x, w->n_in, t);
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
    else if (bits == 5)
        at_precision(w, 5, x, panel0, panel1, y, y_row);
    else
        at_precision(w, bits, x, panel0, panel1, y, y_row);
}

// SPDX-License-Identifier: Apache-2.0
// Nested weights for one instruction set, which defines, beside what nested_codes.h wants, before
// it includes this:
//
//   vi, vf               32-bit sums and floats of LANES rows, 16 bytes each
//   vb_x                 16 bytes to every lane
//   vs, vs_load          LANES rows' scales of a block's four groups
//   vi_zero, vi_add      scale of group g * (v0 . x0 + v1 . x1) added, codes of at most `bits` bits
//   vi_add_two           of groups g and g + 1, codes of at most TWO_GROUPS bits; or no such macro
//   vf_zero, vf_add_scaled
//   vf_rows              a panel's sums, of PARTS vectors
//   vl, vl_load          a block's minima of 8 rows
//   vl_load_half         half a block's; those of groups 2 and 3 are any
//   vm, vm_zero, vm_add  minima times the block's sums of q
//   vm_rows
#include "kernels/nested_codes.h"
#include "kernels/prefetch.h"

enum {
    AT_ONCE = ST_NESTED_TOKENS,
    TOGETHER = LANES == 4 ? 2 : 1, // parts that share a token's loads
};

// Panels follow each other, so what lies ahead is needed soon.
INLINE void prefetch_block(unsigned bits, const struct source *s) {
    st_prefetch(s->pairs, ST_NESTED_PAIRS);
    st_prefetch(s->groups, ST_NESTED_GROUP_BYTES);
    UNROLL for (unsigned b = 2; b < bits; b++) st_prefetch(s->planes[b - 2], ST_NESTED_PLANE);
}

INLINE vi add_groups(vi sum, unsigned bits, vs scales, unsigned g, const struct four *v,
                     const vb x[4]) {
#ifdef TWO_GROUPS
    if (bits <= TWO_GROUPS) return vi_add_two(sum, scales, g, v, x);
#endif
    sum = vi_add(sum, bits, scales, g, v->f0, x[0], v->f1, x[1]);
    return vi_add(sum, bits, scales, g + 1, v->f2, x[2], v->f3, x[3]);
}

// Adds the codes of four vectors times their scales, of TOGETHER parts and n tokens.
INLINE void add_vectors(unsigned bits, const struct source *s, const struct place place[TOGETHER],
                        const vs scales[TOGETHER], const int8_t *q, size_t n,
                        vi exact[TOGETHER][AT_ONCE]) {
    struct four v[TOGETHER];
    UNROLL for (size_t p = 0; p < TOGETHER; p++) v[p] = codes_of(bits, s, place[p]);
    UNROLL for (size_t t = 0; t < n; t++) {
        const int8_t *x4 = q + t * ST_NESTED_BLOCK;
        const vb x[] = {vb_x(x4), vb_x(x4 + 16), vb_x(x4 + 32), vb_x(x4 + 48)};
        UNROLL for (size_t p = 0; p < TOGETHER; p++) exact[p][t] =
            add_groups(exact[p][t], bits, scales[p], 2 * place[p].a, &v[p], x);
    }
}

// Adds a block's codes, or those of half a block.
INLINE void add_parts(unsigned bits, bool half, const struct source *s, size_t part,
                      const int8_t *q, const float *scale, size_t n, vf sum[AT_ONCE][PARTS]) {
    vi exact[TOGETHER][AT_ONCE];
    vs scales[TOGETHER];
    struct place first[TOGETHER], second[TOGETHER];
    UNROLL for (size_t p = 0; p < TOGETHER; p++) {
        size_t row = (part + p) * LANES;
        scales[p] = vs_load(s->groups + (half ? row % HALF_ROWS : row) * ST_NESTED_GROUPS);
        first[p] = place_of(half, part + p, 0);
        second[p] = place_of(half, part + p, 1);
        UNROLL for (size_t t = 0; t < n; t++) exact[p][t] = vi_zero();
    }
    add_vectors(bits, s, first, scales, q, n, exact);
    if (!half) add_vectors(bits, s, second, scales, q + ST_NESTED_HALF, n, exact);
    UNROLL for (size_t p = 0; p < TOGETHER; p++) UNROLL for (size_t t = 0; t < n; t++)
        sum[t][part + p] = vf_add_scaled(sum[t][part + p], exact[p][t], scale[t]);
}

// What a half block at the end of a panel meets.
struct half {
    const int8_t *q;
    const int16_t *sums;
    const float *scale;
};

INLINE void add_half(unsigned bits, struct source *s, struct half x, size_t n,
                     vf sum[AT_ONCE][PARTS], vm minima[AT_ONCE]) {
    UNROLL for (size_t part = 0; part < PARTS; part += TOGETHER)
        add_parts(bits, true, s, part, x.q, x.scale, n, sum);
    vl m = vl_load_half(s->groups + ST_NESTED_GROUP_BYTES / 4);
    UNROLL for (size_t t = 0; t < n; t++) minima[t] =
        vm_add(minima[t], m, x.sums + t * ST_NESTED_GROUPS, x.scale[t]);
    skip_halves(bits, s, 1);
}

// Sums over k of a panel and n tokens, of which x holds those side by side. Leaves s at the next
// one.
INLINE void add_blocks(unsigned bits, struct source *s, const struct st_nested_input *x, size_t n,
                       vf sum[AT_ONCE][PARTS], vm minima[AT_ONCE]) {
    const int8_t *q = x->q;
    const float *scale = x->scale;
    const int16_t *sums = x->sums;
    for (size_t block = 0; block < s->halves / 2; block++, skip_halves(bits, s, 2)) {
        prefetch_block(bits, s);
        for (size_t part = 0; part < PARTS; part += TOGETHER)
            add_parts(bits, false, s, part, q, scale, n, sum);
        vl m = vl_load(s->groups + ST_NESTED_GROUP_BYTES / 2);
        UNROLL for (size_t t = 0; t < n; t++) minima[t] =
            vm_add(minima[t], m, sums + t * ST_NESTED_GROUPS, scale[t]);
        q += n * ST_NESTED_BLOCK;
        scale += n;
        sums += n * ST_NESTED_GROUPS;
    }
    if (s->halves % 2) add_half(bits, s, (struct half){q, sums, scale}, n, sum, minima);
    s->panel++;
}

// A panel's outputs from its sums: an array of a constant length, so that vectors compute it.
INLINE void scale_rows(const struct st_nested_row *row, const vf sum[PARTS], vm minimum,
                       float y[ST_NESTED_PANEL]) {
    float minima[ST_NESTED_PANEL];
    vf_rows(sum, y);
    vm_rows(minimum, minima);
    for (size_t r = 0; r < ST_NESTED_PANEL; r++)
        y[r] = y[r] * row[r].scale + minima[r] * row[r].minimum;
}

INLINE void store_rows(const float rows[ST_NESTED_PANEL], size_t n_rows, float *y) {
    if (n_rows >= ST_NESTED_PANEL)
        memcpy(y, rows, ST_NESTED_PANEL * sizeof *y);
    else
        memcpy(y, rows, n_rows * sizeof *y);
}

// Of n tokens that are inputs, or of two terms each.
INLINE void store_panel(float rows[AT_ONCE][ST_NESTED_PANEL], size_t terms, size_t n, size_t n_rows,
                        float *y, size_t y_row) {
    if (terms == 1)
        UNROLL for (size_t t = 0; t < n; t++) store_rows(rows[t], n_rows, y + t * y_row);
    else
        UNROLL for (size_t t = 0; t + 1 < n; t += 2) {
            for (size_t r = 0; r < ST_NESTED_PANEL; r++) rows[t][r] += rows[t + 1][r];
            store_rows(rows[t], n_rows, y + t / 2 * y_row);
        }
}

// Panels from s on, up to panel1, of which y is the first output. n is a constant where this is
// called.
INLINE void add_panels(const struct st_nested_weight *w, unsigned bits, struct source s,
                       size_t panel1, const struct st_nested_input *x, size_t n, float *y,
                       size_t y_row) {
    size_t first = s.panel * ST_NESTED_PANEL, n_rows = w->n_out - first, terms = x->terms;
    const struct st_nested_row *row = st_nested_row(w, bits, first);
    for (y += first; s.panel < panel1;) {
        vf sum[AT_ONCE][PARTS];
        vm minimum[AT_ONCE];
        float rows[AT_ONCE][ST_NESTED_PANEL];
        UNROLL for (size_t t = 0; t < n; t++) {
            UNROLL for (size_t p = 0; p < PARTS; p++) sum[t][p] = vf_zero();
            minimum[t] = vm_zero();
        }
        add_blocks(bits, &s, x, n, sum, minimum);
        UNROLL for (size_t t = 0; t < n; t++) scale_rows(row, sum[t], minimum[t], rows[t]);
        store_panel(rows, terms, n, n_rows, y, y_row);
        y += ST_NESTED_PANEL;
        row += ST_NESTED_PANEL;
        n_rows -= ST_NESTED_PANEL;
    }
}

#define TOKENS(n)                                                                                  \
    case n:                                                                                        \
        add_panels(w, bits, s, end, &group, n, y + t / x->terms * y_row, y_row);                   \
        break;

// A step's tokens meet panel after panel; those that are more than go together meet each of them
// while it is in the cache.
INLINE void at_precision(const struct st_nested_weight *w, unsigned bits,
                         const struct st_nested_input *x, size_t panel0, size_t panel1, float *y,
                         size_t y_row) {
    struct source s = source_of(w, bits, panel0);
    size_t at_once = x->n_tokens > ST_NESTED_TOKENS ? 1 : panel1 - panel0;
    for (size_t end; s.panel < panel1; s.panel = end) {
        end = s.panel + at_once;
        for (size_t t = 0; t < x->n_tokens; t += ST_NESTED_TOKENS) {
            struct st_nested_input group = st_nested_from(x, w->n_in, t);
            switch (group.n_tokens) {
                TOKENS(1)
                TOKENS(2)
                TOKENS(3)
                TOKENS(4)
            }
        }
        skip_halves(bits, &s, at_once * s.halves);
    }
}

#define BITS(b)                                                                                    \
    case b:                                                                                        \
        at_precision(w, b, x, panel0, panel1, y, y_row);                                           \
        break;

void NAME(const struct st_nested_weight *w, unsigned bits, const struct st_nested_input *x,
          size_t panel0, size_t panel1, float *y, size_t y_row) {
    switch (bits) {
        BITS(2)
        BITS(3)
        BITS(4)
        BITS(5)
        BITS(6)
        BITS(7)
    }
}

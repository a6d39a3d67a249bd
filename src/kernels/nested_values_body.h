// SPDX-License-Identifier: Apache-2.0
// Nested weights as numbers for one instruction set, which defines before it includes this:
//   NAME, VALUE
//   put      to[0, 16) = codes * step + least, of 16 bytes
#include "kernels/nested_codes_128.h"
#include "kernels/nested_codes.h"
#include "kernels/nested_values_rows.h"

// Of the row that s is of.
struct row {
    size_t in_panel;
    struct st_nested_row of;
};

// 32 values of one group, from its place among those of the block or of half of one.
INLINE void put_group(const struct row *row, const uint8_t *scale, size_t to_minimum, vb v0, vb v1,
                      VALUE *to) {
    float step = row->of.scale * (float)*scale;
    float least = row->of.minimum * (float)(int8_t)scale[to_minimum];
    put(v0, step, least, to);
    put(v1, step, least, to + 16);
}

INLINE void put_four(unsigned bits, const struct source *s, const struct row *row, bool half,
                     unsigned a, VALUE *to) {
    size_t r = half ? row->in_panel % HALF_ROWS : row->in_panel;
    const uint8_t *scale = s->groups + r * ST_NESTED_GROUPS + 2 * a;
    size_t to_minimum = ST_NESTED_GROUP_BYTES / (half ? 4 : 2);
    struct place place = place_of(half, row->in_panel, a);
    place.a = a; // the same, but a constant
    struct four v = codes_of(bits, s, place);
    put_group(row, scale, to_minimum, v.f0, v.f1, to);
    put_group(row, scale + 1, to_minimum, v.f2, v.f3, to + ST_NESTED_HALF / 2);
}

INLINE void put_row(const struct st_nested_weight *w, unsigned bits, size_t row, size_t first,
                    size_t n, VALUE *to) {
    struct source s = source_of(w, bits, row / ST_NESTED_PANEL);
    const struct row r = {row % ST_NESTED_PANEL, *st_nested_row(w, bits, row)};
    size_t halves = st_ceil_div(n, ST_NESTED_HALF);
    bool ends_in_half = first / ST_NESTED_HALF + halves == s.halves && s.halves % 2;
    skip_halves(bits, &s, first / ST_NESTED_HALF);
    for (size_t b = 0; b < (halves + !ends_in_half) / 2; b++, to += ST_NESTED_BLOCK) {
        put_four(bits, &s, &r, false, 0, to);
        put_four(bits, &s, &r, false, 1, to + ST_NESTED_HALF);
        skip_halves(bits, &s, 2);
    }
    if (!ends_in_half) return;
    if (r.in_panel < HALF_ROWS)
        put_four(bits, &s, &r, true, 0, to);
    else
        put_four(bits, &s, &r, true, 1, to);
}

#define BITS(b)                                                                                    \
    case b:                                                                                        \
        put_row(w, b, row, first, n, dst);                                                         \
        break;

void NAME(const struct st_nested_weight *w, unsigned bits, size_t row, size_t first, size_t n,
          VALUE *dst) {
    switch (bits) {
        BITS(2)
        BITS(3)
        BITS(4)
        BITS(5)
        BITS(6)
        BITS(7)
    }
}

// SPDX-License-Identifier: Apache-2.0
// The codes of nested weights at any precision, for one instruction set, which defines before it
// includes this:
//
//   vb                   bytes of LANES rows, 16 each
//   vb_load, vb_shl, vb_shr (zeros or neighbours' bits come in), vb_double, vb_and
//   vb_select            bits of a where the mask's are 1, else of b
//   vb_append            bits of a shifted left by one above the lowest of b
//   vb_append_low, vb_append_high    the same of half a byte of a
#ifndef ST_KERNELS_NESTED_CODES_H
#define ST_KERNELS_NESTED_CODES_H

#include "kernels/nested_rows.h"

#include <stdbool.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

enum { PART_BYTES = 16 * LANES, HALF_ROWS = ST_NESTED_PANEL / 2 };

// What is read of a panel at a precision, from a block on.
struct source {
    size_t panel, halves; // of blocks in a panel
    const uint8_t *pairs, *planes[ST_NESTED_HIGHEST - 2], *groups;
};

INLINE struct source source_of(const struct st_nested_weight *w, unsigned bits, size_t panel) {
    size_t halves = st_ceil_div(w->n_in, ST_NESTED_HALF), at = panel * halves;
    struct source s = {.panel = panel,
                       .halves = halves,
                       .pairs = st_nested_plane(w, 2) + at * (ST_NESTED_PAIRS / 2),
                       .groups = w->groups[bits] + at * (ST_NESTED_GROUP_BYTES / 2)};
    for (unsigned b = 2; b < bits; b++)
        s.planes[b - 2] = st_nested_plane(w, b + 1) + at * (ST_NESTED_PLANE / 2);
    return s;
}

INLINE void skip_halves(unsigned bits, struct source *s, size_t n) {
    s->pairs += n * (ST_NESTED_PAIRS / 2);
    s->groups += n * (ST_NESTED_GROUP_BYTES / 2);
    UNROLL for (unsigned b = 2; b < bits; b++) s->planes[b - 2] += n * (ST_NESTED_PLANE / 2);
}

// Of the vectors 4 a + f of a block, f = 0 .. 3. Not an array, which would live in memory.
struct four {
    vb f0, f1, f2, f3;
};

// Bits [0, 2), [2, 4), [4, 6) and [6, 8).
INLINE struct four two_bits(vb pair) {
    return (struct four){vb_and(pair, 3), vb_and(vb_shr(pair, 2), 3), vb_and(vb_shr(pair, 4), 3),
                         vb_and(vb_shr(pair, 6), 3)};
}

// Codes of which `even` has those of vectors 0 and 2 in the halves of its bytes, `odd` of 1 and 3.
INLINE struct four halves(vb even, vb odd, uint8_t mask) {
    return (struct four){vb_and(even, mask), vb_and(odd, mask), vb_and(vb_shr(even, 4), mask),
                         vb_and(vb_shr(odd, 4), mask)};
}

INLINE struct four three_bits(vb pair, vb third, unsigned a) {
    vb first = a ? vb_shr(third, 1) : third;
    return halves(vb_select(0x66, vb_double(pair), first),
                  vb_select(0x66, vb_shr(pair, 1), vb_shr(third, 2 + a)), 7);
}

// Codes of four bits, before they are taken apart.
struct two {
    vb even, odd;
};

INLINE struct two four_bits(vb pair, vb third, vb fourth, unsigned a) {
    vb low =
        a ? vb_select(0x55, vb_shr(fourth, 1), third) : vb_select(0x55, fourth, vb_double(third));
    return (struct two){vb_select(0x33, low, vb_shl(pair, 2)),
                        vb_select(0x33, vb_shr(low, 2), pair)};
}

INLINE struct four five_bits(struct two codes, vb plane, unsigned a) {
    return (struct four){vb_append_low(codes.even, a ? vb_shr(plane, 1) : plane),
                         vb_append_low(codes.odd, vb_shr(plane, 2 + a)),
                         vb_append_high(codes.even, vb_shr(plane, 4 + a)),
                         vb_append_high(codes.odd, vb_shr(plane, 6 + a))};
}

// The codes of one bit more.
INLINE struct four append(struct four codes, vb plane, unsigned a) {
    return (struct four){vb_append(codes.f0, a ? vb_shr(plane, 1) : plane),
                         vb_append(codes.f1, vb_shr(plane, 2 + a)),
                         vb_append(codes.f2, vb_shr(plane, 4 + a)),
                         vb_append(codes.f3, vb_shr(plane, 6 + a))};
}

// Where the codes of four vectors of a part are: in half a block the bits `a` are those of rows.
struct place {
    size_t pair, plane;
    unsigned a;
};

INLINE struct place place_of(bool half, size_t part, unsigned a) {
    size_t at = part * PART_BYTES, row = part * LANES;
    return half ? (struct place){at, at % (ST_NESTED_PLANE / 2), (unsigned)row / HALF_ROWS}
                : (struct place){a * ST_NESTED_PLANE + at, at, a};
}

// The codes of a part of a block's panel.
INLINE struct four codes_of(unsigned bits, const struct source *s, struct place place) {
    size_t at = place.plane;
    unsigned a = place.a;
    vb pair = vb_load(s->pairs + place.pair);
    if (bits == 2) return two_bits(pair);
    vb third = vb_load(s->planes[0] + at);
    if (bits == 3) return three_bits(pair, third, a);
    struct two two = four_bits(pair, third, vb_load(s->planes[1] + at), a);
    if (bits == 4) return halves(two.even, two.odd, 15);
    struct four codes = five_bits(two, vb_load(s->planes[2] + at), a);
    UNROLL for (unsigned b = 5; b < bits; b++) codes =
        append(codes, vb_load(s->planes[b - 2] + at), a);
    return codes;
}

#endif

// SPDX-License-Identifier: Apache-2.0
// INT8 weights whose leading bits are nested codes (kernels/nested.h): one set of weights for
// prompts, which multiply in INT8 (kernels/int8.h), and for steps, which read as many bits as their
// precision has. Panels are made again in a cache while a chunk passes; steps in INT8 multiply
// straight from the codes.
//
// Codes have 7 or 8 bits; the top `high` of them are what steps read at most. With c the code as
// one of 8 bits (the last one 0 if there are 7), gs and gm the scale and the minimum of its group
// at `high` bits, in 16 bits that wrap:
//   step = (128 gs row.step + 2^14) >> 15
//   least = (256 gm row.minimum + 2^14) >> 15
//   at(c) = (256 (c - 128) step + 2^14) >> 15
//   w = clamp((at(c) - at(half) + least + 16) >> 5, -127, 127)
// with half = 2^(7 - high), or 0 where steps read all bits: a code whose lower bits are `half`
// stands for the value that steps give it. So step is that of c in 1/4096 of the row's INT8 scale,
// least in 1/32 of it.
#ifndef ST_KERNELS_NESTED_INT8_H
#define ST_KERNELS_NESTED_INT8_H

#include "kernels/int8.h"
#include "kernels/nested.h"

enum { ST_NESTED_INT8_TOKENS = 4 }; // most rows of input that products take at once

// Of a row: what the scales and minima of its groups are multiplied by.
struct st_nested_int8_row {
    int16_t step, minimum;
};

// A row's, from what its groups at `high` bits are multiples of and its INT8 scale, as near as they
// can be. Divisions and rounding alone, so the same everywhere.
struct st_nested_int8_row st_nested_int8_row_of(const struct st_nested_row *row, unsigned high,
                                                float int8_scale);

// One INT8 weight of w, whose groups at w->high bits and w->stored are set.
int8_t st_nested_int8_value(const struct st_nested_weight *w, const struct st_nested_int8_row *rows,
                            size_t row, size_t column);
// The same of a code of 8 bits that need not be stored.
int8_t st_nested_int8_of_code(const struct st_nested_weight *w, struct st_nested_group group,
                              const struct st_nested_int8_row *row, unsigned code);
// The lower bits of an 8-bit code that stands for what steps read at most.
static inline unsigned st_nested_int8_half(const struct st_nested_weight *w) {
    return w->stored == w->high ? 0 : 128u >> w->high;
}

// Writes panel `panel` of w, 8 rows, as one half of an INT8 panel: to[64 (i / 4) + 4 r + i % 4] for
// row r and element i, i < k rounded up to ST_INT8_K; elements past k are zeros. The other half is
// not touched. rows: [padded rows] of w.
typedef void st_nested_int8_fn(const struct st_nested_weight *w,
                               const struct st_nested_int8_row *rows, size_t panel, int8_t *to);

// The products of that panel, which is not written: sums[t * sum_row + r] = sum over k of x[t, k] *
// w[r, k] for its 8 rows r. x: n_tokens rows x_row bytes apart of at least k rounded up to
// ST_INT8_K bytes, those past k 0. What they hold for zero is the kernel's `zero`, as in
// kernels/int8.h. n_tokens in [1, ST_NESTED_INT8_TOKENS].
typedef void st_nested_int8_product_fn(const struct st_nested_weight *w,
                                       const struct st_nested_int8_row *rows, size_t panel,
                                       const uint8_t *x, size_t x_row, size_t n_tokens,
                                       int32_t *sums, size_t sum_row);

struct st_nested_int8_kernel {
    const char *name;
    uint64_t isa;
    st_nested_int8_fn *fn;
    uint8_t zero; // the byte that stands for 0 in the input of products
    st_nested_int8_product_fn *product;
};

extern const struct st_nested_int8_kernel st_nested_int8_kernels[]; // best first; ends with NULL
const struct st_nested_int8_kernel *st_nested_int8_select(uint64_t cpu_flags);

#endif

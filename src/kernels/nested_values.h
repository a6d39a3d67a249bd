// SPDX-License-Identifier: Apache-2.0
// Nested weights as numbers, a row at a time, for the paths of kernels/linear.h: where these round
// weights and inputs to 16 bits, a prompt is faster than by integer products of inputs in two
// terms.
#ifndef ST_KERNELS_NESTED_VALUES_H
#define ST_KERNELS_NESTED_VALUES_H

#include "kernels/nested.h"

// dst[i] = element first + i of a row at one precision, i in [0, n): with the floats
// step = row.scale * group scale and least = row.minimum * group minimum, a multiply-add of code
// and step to least. first is a multiple of ST_NESTED_BLOCK. dst has room for n rounded up to a
// block; elements past n may be written.
typedef void st_nested_floats_fn(const struct st_nested_weight *w, unsigned bits, size_t row,
                                 size_t first, size_t n, float *dst);
// The same rounded to the nearest BF16, of two the even one; subnormal values may become 0.
typedef void st_nested_bf16_fn(const struct st_nested_weight *w, unsigned bits, size_t row,
                               size_t first, size_t n, uint16_t *dst);

struct st_nested_values {
    const char *name;
    uint64_t isa;
    // NULL: no path that this CPU selects takes them.
    st_nested_floats_fn *floats;
    st_nested_bf16_fn *bf16;
};

extern const struct st_nested_values st_nested_values[]; // best first; ends with a NULL name
const struct st_nested_values *st_nested_values_select(uint64_t cpu_flags);

#endif

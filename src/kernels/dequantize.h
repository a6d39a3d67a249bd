// SPDX-License-Identifier: Apache-2.0
// Stored weights to float, exactly as their type defines them.
#ifndef ST_KERNELS_DEQUANTIZE_H
#define ST_KERNELS_DEQUANTIZE_H

#include "base/dtype.h"

#include <stddef.h>
#include <stdint.h>

// dst[i] = element first + i of the row that starts at src, i in [0, n). first and n are multiples
// of the type's block_items. src may have any alignment.
typedef void st_dequantize_fn(const void *src, size_t first, size_t n, float *dst);

struct st_dequantize {
    const char *name;
    uint64_t isa;
    st_dequantize_fn *fn[ST_N_DTYPES];
};

extern const struct st_dequantize st_dequantizers[]; // best first; ends with a NULL name
const struct st_dequantize *st_dequantize_select(uint64_t cpu_flags);

// The same of block types, rounded to the nearest BF16, of two the even one; subnormal values may
// become 0. n is even.
typedef void st_dequantize_bf16_fn(const void *src, size_t first, size_t n, uint16_t *dst);

struct st_dequantize_bf16 {
    const char *name;
    uint64_t isa;
    st_dequantize_bf16_fn *fn[ST_N_DTYPES]; // NULL: not a type of blocks
};

extern const struct st_dequantize_bf16 st_dequantizers_bf16[]; // as above
const struct st_dequantize_bf16 *st_dequantize_bf16_select(uint64_t cpu_flags);

#endif

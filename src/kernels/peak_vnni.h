// SPDX-License-Identifier: Apache-2.0
// Integer products from register to register with instructions that multiply and add. The
// instruction set that includes this defines SUMS and, of its registers, vi, vi_load, vi_add and
// vi_sum.
#include "kernels/peak_rows.h"

#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))

typedef void product_fn(vi *sum, vi a, vi b);

INLINE float add_up(const void *data, size_t rounds, product_fn *add_products) {
    vi a = vi_load(data), b = a, sum[SUMS];
    UNROLL for (int i = 0; i < SUMS; i++) sum[i] = vi_load((const void *)((const char *)data + i));
    for (size_t r = 0; r < rounds; r++)
        UNROLL for (int i = 0; i < SUMS; i++) add_products(&sum[i], a, b);
    UNROLL for (int i = 1; i < SUMS; i++) sum[0] = vi_add(sum[0], sum[i]);
    return (float)vi_sum(sum[0]);
}

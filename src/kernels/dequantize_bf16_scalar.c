// SPDX-License-Identifier: Apache-2.0
// The definition: what dequantize_scalar.c gives, rounded.
#include "base/half.h"
#include "kernels/dequantize_rows.h"

#define DEQUANTIZE_BF16(id, type, isa)                                                             \
    void st_dequantize_bf16_##type##_scalar(const void *src, size_t first, size_t n,               \
                                            uint16_t *dst) {                                       \
        float block[ST_##id##_ITEMS];                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            size_t at = i % ST_##id##_ITEMS;                                                       \
            if (at == 0) st_dequantize_##type##_scalar(src, first + i, ST_##id##_ITEMS, block);    \
            dst[i] = st_bf16_from_f32(block[at]);                                                  \
        }                                                                                          \
    }

ST_BLOCK_TYPES(DEQUANTIZE_BF16, )

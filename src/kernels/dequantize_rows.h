// SPDX-License-Identifier: Apache-2.0
// The functions behind the rows of dequantize.c: every type for every instruction set.
#ifndef ST_KERNELS_DEQUANTIZE_ROWS_H
#define ST_KERNELS_DEQUANTIZE_ROWS_H

#include "kernels/block_types.h"
#include "kernels/dequantize.h"

#define ST_DEQUANTIZE_TYPES(X, isa)                                                                \
    X(F32, f32, isa)                                                                               \
    X(F16, f16, isa)                                                                               \
    X(BF16, bf16, isa)                                                                             \
    ST_BLOCK_TYPES(X, isa)

#define DECLARE(id, type, isa) st_dequantize_fn st_dequantize_##type##_##isa;
ST_DEQUANTIZE_TYPES(DECLARE, scalar)
ST_DEQUANTIZE_TYPES(DECLARE, avx2)
ST_DEQUANTIZE_TYPES(DECLARE, avx512)
ST_DEQUANTIZE_TYPES(DECLARE, neon)
#undef DECLARE

#define DECLARE(id, type, isa) st_dequantize_bf16_fn st_dequantize_bf16_##type##_##isa;
ST_BLOCK_TYPES(DECLARE, scalar)
ST_BLOCK_TYPES(DECLARE, avx512bf16)
#undef DECLARE

#endif

// SPDX-License-Identifier: Apache-2.0
// The functions behind the rows of dequantize.c: every type for every instruction set.
#ifndef ST_KERNELS_DEQUANTIZE_ROWS_H
#define ST_KERNELS_DEQUANTIZE_ROWS_H

#include "kernels/dequantize.h"

#define ST_DEQUANTIZE_TYPES(X, isa)                                                                \
    X(F32, f32, isa)                                                                               \
    X(F16, f16, isa)                                                                               \
    X(BF16, bf16, isa)                                                                             \
    X(Q4_0, q4_0, isa)                                                                             \
    X(Q4_1, q4_1, isa)                                                                             \
    X(Q5_0, q5_0, isa)                                                                             \
    X(Q5_1, q5_1, isa)                                                                             \
    X(Q8_0, q8_0, isa)                                                                             \
    X(Q2_K, q2_k, isa)                                                                             \
    X(Q3_K, q3_k, isa)                                                                             \
    X(Q4_K, q4_k, isa)                                                                             \
    X(Q5_K, q5_k, isa)                                                                             \
    X(Q6_K, q6_k, isa)                                                                             \
    X(IQ4_NL, iq4_nl, isa)                                                                         \
    X(IQ4_XS, iq4_xs, isa)

#define DECLARE(id, type, isa) st_dequantize_fn st_dequantize_##type##_##isa;
ST_DEQUANTIZE_TYPES(DECLARE, scalar)
ST_DEQUANTIZE_TYPES(DECLARE, avx2)
ST_DEQUANTIZE_TYPES(DECLARE, avx512)
ST_DEQUANTIZE_TYPES(DECLARE, neon)
#undef DECLARE

#endif

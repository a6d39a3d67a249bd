// SPDX-License-Identifier: Apache-2.0
// The functions behind the rows of blocks.c: every block type for every instruction set.
#ifndef ST_KERNELS_BLOCKS_ROWS_H
#define ST_KERNELS_BLOCKS_ROWS_H

#include "kernels/blocks.h"

#define ST_BLOCKS_TYPES(X, isa)                                                                    \
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

#define DECLARE(id, type, isa) st_blocks_fn st_blocks_##type##_##isa;
ST_BLOCKS_TYPES(DECLARE, scalar)
ST_BLOCKS_TYPES(DECLARE, avx2)
ST_BLOCKS_TYPES(DECLARE, avxvnni)
ST_BLOCKS_TYPES(DECLARE, avx512vnni)
#undef DECLARE

st_blocks_quantize_fn st_blocks_quantize_plain;
st_blocks_quantize_fn st_blocks_quantize_avx2;

#endif

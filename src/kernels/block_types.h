// SPDX-License-Identifier: Apache-2.0
// The block types that kernels have functions for, whose names end in the second column.
#ifndef ST_KERNELS_BLOCK_TYPES_H
#define ST_KERNELS_BLOCK_TYPES_H

#ifndef __OPENCL_VERSION__
#include "base/dtype.h"
#endif

// X(id of the dtype, name in functions, isa)
#define ST_BLOCK_TYPES(X, isa)                                                                     \
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
    X(IQ4_XS, iq4_xs, isa)                                                                         \
    X(TQ1_0, tq1_0, isa)                                                                           \
    X(TQ2_0, tq2_0, isa)                                                                           \
    X(MXFP4, mxfp4, isa)

#endif

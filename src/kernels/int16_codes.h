// SPDX-License-Identifier: Apache-2.0
// How codes of blocks become the integers of kernels/int16.h, without floats between. A part's
// value is code * scale - minimum (block_parts.h). Counted in half steps from the middle of their
// range, codes are
//
//   q = 2 * (code - least) - span      for the value q * scale / 2 + middle
//   middle = (least + span / 2) * scale - minimum
//
// The largest |middle| + span / 2 * |scale| of all parts becomes ST_INT16_MAX_WEIGHT. In eighths of
// that unit, rounded to whole numbers, halves to even, a part has
//
//   step = scale / 2 << (15 - shift)   shift: st_int16_shift()
//   from = middle
//
// and an element is ((((q << shift) * step + (1 << 14)) >> 15) + from + 4) >> 3: the product is
// rounded to an eighth, then the sum to the nearest.
#ifndef ST_KERNELS_INT16_CODES_H
#define ST_KERNELS_INT16_CODES_H

#include "kernels/int16.h"

// X(id, name, scales for each 16, least code, span: the largest code less the least)
#define ST_INT16_CODES(X)                                                                          \
    X(Q4_0, q4_0, false, 0, 15)                                                                    \
    X(Q4_1, q4_1, false, 0, 15)                                                                    \
    X(Q5_0, q5_0, false, 0, 31)                                                                    \
    X(Q5_1, q5_1, false, 0, 31)                                                                    \
    X(Q8_0, q8_0, false, -128, 255)                                                                \
    X(Q2_K, q2_k, true, 0, 3)                                                                      \
    X(Q3_K, q3_k, true, 0, 7)                                                                      \
    X(Q4_K, q4_k, false, 0, 15)                                                                    \
    X(Q5_K, q5_k, false, 0, 31)                                                                    \
    X(Q6_K, q6_k, true, 0, 63)                                                                     \
    X(IQ4_NL, iq4_nl, false, -127, 240)                                                            \
    X(IQ4_XS, iq4_xs, false, -127, 240)                                                            \
    X(TQ1_0, tq1_0, false, 0, 2)                                                                   \
    X(TQ2_0, tq2_0, false, 0, 3)                                                                   \
    X(MXFP4, mxfp4, false, -12, 24)

// As far as 16 bits with a sign hold q.
static inline int st_int16_shift(int span) {
    int shift = 0;
    while (span << (shift + 1) <= INT16_MAX) shift++;
    return shift;
}

#endif

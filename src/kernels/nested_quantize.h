// SPDX-License-Identifier: Apache-2.0
// One block of an input in INT8, as QUANTIZE, with the vectors that the including file is compiled
// for.
#include "kernels/nested_rows.h"

#include <string.h>

// Halves to even, by the rounding of a sum that leaves no room for a fraction: |x| < 2^22.
static inline int32_t to_int(float x) {
    float sum = x + 0x1.8p23f;
    int32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    return bits - 0x4b400000;
}

// All 128 elements, so that the compiler can make vectors of them.
void QUANTIZE(const float *restrict x, int8_t *restrict q, float *restrict scale,
              int32_t *restrict offset) {
    int32_t max_bits = 0, sum = 0; // magnitudes are ordered like their bits
    float max;
    for (size_t i = 0; i < ST_NESTED_BLOCK; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        max_bits = bits > max_bits ? bits : max_bits;
    }
    memcpy(&max, &max_bits, sizeof max);
    *scale = max / 127.0f;
    float inverse = max >= 0x1p-100f ? 127.0f / max : 0.0f;
    for (size_t i = 0; i < ST_NESTED_BLOCK; i++) {
        int32_t v = to_int(x[i] * inverse);
        sum += v;
        q[i] = (int8_t)v;
    }
    *offset = -128 * sum;
}

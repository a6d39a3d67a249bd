// SPDX-License-Identifier: Apache-2.0
// One part of an input in integers, as QUANTIZE, with the vectors that the including file is
// compiled for.
#include "kernels/blocks_rows.h"

#include <string.h>

// Halves to even, by the rounding of a sum that leaves no room for a fraction: |x| < 2^22.
static inline int32_t to_int(float x) {
    float sum = x + 0x1.8p23f;
    int32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    return bits - 0x4b400000;
}

void QUANTIZE(const float *restrict x, int8_t *restrict high, int8_t *restrict low,
              float *restrict scale, float *restrict sum, float *restrict half_sum) {
    int32_t max_bits = 0, q[ST_BLOCKS_PART], part_sum[2] = {0, 0};
    float max; // magnitudes are ordered like their bits
    for (size_t i = 0; i < ST_BLOCKS_PART; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        max_bits = bits > max_bits ? bits : max_bits;
    }
    memcpy(&max, &max_bits, sizeof max);
    float inverse = max >= 0x1p-100f ? (float)ST_BLOCKS_MAX_Q / max : 0.0f;
    for (size_t i = 0; i < ST_BLOCKS_PART; i++) q[i] = (int16_t)to_int(x[i] * inverse);
    for (size_t i = 0; i < ST_BLOCKS_PART; i++) high[i] = (int8_t)((q[i] + 64) >> 7);
    for (size_t i = 0; i < ST_BLOCKS_PART; i++) low[i] = (int8_t)(q[i] - 128 * high[i]);
    for (size_t i = 0; i < ST_BLOCKS_PART / 2; i++) part_sum[0] += q[i];
    for (size_t i = ST_BLOCKS_PART / 2; i < ST_BLOCKS_PART; i++) part_sum[1] += q[i];
    *scale = max / (float)ST_BLOCKS_MAX_Q;
    half_sum[0] = *scale * (float)part_sum[0];
    half_sum[1] = *scale * (float)part_sum[1];
    *sum = *scale * (float)(part_sum[0] + part_sum[1]);
}

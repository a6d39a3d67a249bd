// SPDX-License-Identifier: Apache-2.0
// Pieces of quantizing floats, written so that the compiler makes vectors of loops over them.
#ifndef ST_KERNELS_QUANTIZE_FLOAT_H
#define ST_KERNELS_QUANTIZE_FLOAT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Halves to even, by the rounding of a sum that leaves no room for a fraction: |x| < 2^22.
static inline int32_t st_round_to_int(float x) {
    float sum = x + 0x1.8p23f;
    int32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    return bits - 0x4b400000;
}

// The largest magnitude of x[0, n); magnitudes are ordered like their bits.
static inline float st_max_magnitude(const float *x, size_t n) {
    int32_t max_bits = 0;
    float max;
    for (size_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        max_bits = bits > max_bits ? bits : max_bits;
    }
    memcpy(&max, &max_bits, sizeof max);
    return max;
}

// What x is multiplied with so that `max` becomes max_q; 0 where all of x is as good as 0.
static inline float st_quantize_factor(float max, float max_q) {
    return max >= 0x1p-100f ? max_q / max : 0.0f;
}

#endif

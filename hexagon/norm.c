// SPDX-License-Identifier: Apache-2.0
// RMSNorm with the bits of a host whose vectors have so many lanes: sums depend on their order.
// There are four vectors of sums; what does not fill four more goes to the first.
#include "kernels.h"

#include "runtime.h"

#include <stdbool.h>

enum { N_SUMS = 4, NEON_LANES = 4, MANTISSA_BITS = 23, BIAS = 127 };

// Of a whole number of 49 or 50 bits, digit by digit: 25 bits, of which 24 are kept, rounded. There
// is no half-way: the square of such a number has more bits.
static uint32_t root_of(uint64_t x) {
    uint64_t root = 0, left = 0;
    for (int i = 0; i < 25; i++, x <<= 2) {
        left = left << 2 | (x >> 48 & 3);
        root <<= 1;
        if (left < root * 2 + 1) continue;
        left -= root * 2 + 1;
        root |= 1;
    }
    return (uint32_t)((root + 1) >> 1);
}

float dsp_root(float x) {
    uint32_t bits = dsp_bits(x), exponent = bits >> MANTISSA_BITS;
    if (!(x > 0.0f) || exponent == 255) return x;
    if (exponent == 0) return dsp_root(x * 0x1p24f) * 0x1p-12f;
    uint32_t one = 1u << MANTISSA_BITS, mantissa = (bits & (one - 1)) | one;
    bool odd = exponent % 2 == 0; // its power of two, which is then halved
    uint32_t root = root_of((uint64_t)mantissa << (odd ? 26 : 25));
    return dsp_float(((exponent + BIAS) / 2 << MANTISSA_BITS) + (root - one));
}

static float add_lanes(float *sum, uint32_t lanes) {
    if (lanes == NEON_LANES) return (sum[0] + sum[1]) + (sum[2] + sum[3]); // by neighbours
    for (uint32_t half = lanes / 2; half > 0; half /= 2)
        for (uint32_t l = 0; l < half; l++) sum[l] += sum[l + half];
    return sum[0];
}

static float square_sum(const float *x, uint32_t n, uint32_t lanes) {
    float sums[N_SUMS * DSP_MAX_LANES] = {0.0f}; // those of a vector side by side
    uint32_t i = 0, step = N_SUMS * lanes;
    for (; i + step <= n; i += step)
        for (uint32_t j = 0; j < step; j++) sums[j] = __builtin_fmaf(x[i + j], x[i + j], sums[j]);
    for (uint32_t l = 0; i < n; i++, l = l + 1 < lanes ? l + 1 : 0)
        sums[l] = __builtin_fmaf(x[i], x[i], sums[l]);
    for (uint32_t l = 0; l < lanes; l++) {
        float *sum = sums + l;
        *sum = (sum[0] + sum[lanes]) + (sum[2 * lanes] + sum[3 * lanes]);
    }
    return add_lanes(sums, lanes);
}

void dsp_rmsnorm(const float *x, const float *weight, float epsilon, uint32_t n, uint32_t lanes,
                 float *y) {
    float factor = 1.0f / dsp_root(square_sum(x, n, lanes) / (float)n + epsilon);
    for (uint32_t i = 0; i < n; i++) y[i] = x[i] * factor * weight[i];
}

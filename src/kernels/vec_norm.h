// SPDX-License-Identifier: Apache-2.0
// What a processor with single floats needs for the bits of a host's RMSNorm, whose vectors have 4,
// 8 or 16 lanes: the order in which their sums are added, and a root that is correctly rounded. For
// the Hexagon program and that of the device `opencl`. Nothing here but C that OpenCL has; INLINE,
// uint32_t, uint64_t and what base/half.h does with bits are the includer's.
#ifndef ST_KERNELS_VEC_NORM_H
#define ST_KERNELS_VEC_NORM_H

// There are four vectors of sums; what does not fill four more goes to the first.
enum { NORM_SUMS = 4, NORM_MAX_LANES = 16, NORM_NEON_LANES = 4 };

// Of a whole number of 49 or 50 bits, digit by digit: 25 bits, of which 24 are kept, rounded. There
// is no half-way: the square of such a number has more bits.
INLINE uint32_t norm_root_of(uint64_t x) {
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

// The square root, to nearest even; a number that has none is returned.
INLINE float norm_root(float x) {
    const uint32_t one = 1u << 23, bias = 127;
    uint32_t bits = st_float_bits(x), exponent = bits >> 23;
    int small = exponent == 0;
    if (!(x > 0.0f) || exponent == 255) return x;
    if (small) {
        bits = st_float_bits(x * 0x1p24f);
        exponent = bits >> 23;
    }
    uint32_t mantissa = (bits & (one - 1)) | one;
    int odd = exponent % 2 == 0; // its power of two, which is then halved
    uint32_t root = norm_root_of((uint64_t)mantissa << (odd ? 26 : 25));
    float y = st_float_from_bits(((exponent + bias) / 2 << 23) + (root - one));
    return small ? y * 0x1p-12f : y;
}

// The sum of a vector's lanes. Overwrites them.
INLINE float norm_lanes_total(float *sums, uint32_t lanes) {
    if (lanes == NORM_NEON_LANES) return (sums[0] + sums[1]) + (sums[2] + sums[3]); // neighbours
    for (uint32_t n = lanes / 2; n > 0; n /= 2)
        for (uint32_t l = 0; l < n; l++) sums[l] += sums[l + n];
    return sums[0];
}

// Of the four vectors' sums, those of a vector side by side. Overwrites them.
INLINE float norm_total(float *sums, uint32_t lanes) {
    for (uint32_t l = 0; l < lanes; l++) {
        float *sum = sums + l;
        *sum = (sum[0] + sum[lanes]) + (sum[2 * lanes] + sum[3 * lanes]);
    }
    return norm_lanes_total(sums, lanes);
}

#endif

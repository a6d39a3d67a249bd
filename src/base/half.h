// SPDX-License-Identifier: Apache-2.0
// 16-bit floats to and from 32 bits: exact one way, round to nearest even the other.
#ifndef ST_BASE_HALF_H
#define ST_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline float st_float_from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint32_t st_float_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

// a where the mask has all bits, b where it has none. A branch would keep compilers from making
// vectors.
static inline float st_float_select(uint32_t mask, float a, float b) {
    return st_float_from_bits((st_float_bits(a) & mask) | (st_float_bits(b) & ~mask));
}

static inline float st_f32_from_bf16(uint16_t h) {
    return st_float_from_bits((uint32_t)h << 16);
}

static inline uint16_t st_bf16_from_f32(float f) {
    uint32_t u = st_float_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40); // a NaN stays one
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float st_f32_from_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
    if (exponent == 31) return st_float_from_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent != 0) return st_float_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    float f = (float)mantissa * 0x1p-24f; // subnormal or zero, exact
    return sign ? -f : f;
}

static inline uint16_t st_f16_from_f32(float f) {
    uint32_t u = st_float_bits(f), magnitude = u & 0x7fffffffu;
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00);
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00); // rounds past the largest half
    if (magnitude < 0x38800000u) { // subnormal: let the adder round
        float shifted = st_float_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (st_float_bits(shifted) - 0x3f000000u));
    }
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | (magnitude - 0x38000000u) >> 13);
}

#endif

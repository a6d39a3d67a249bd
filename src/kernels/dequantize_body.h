// SPDX-License-Identifier: Apache-2.0
// Every stored type to floats, for one instruction set: NAME(type) gives the functions their names.
// A block type goes in two steps: bit fields to signed bytes, in fixed loops over arrays of this
// file's own that the compiler vectorises, then bytes to floats times a scale. dequantize_scalar.c
// is the definition and docs/FORMAT.md describes the layouts.
//
// A file that defines VALUE gives what floats have in #ifndef VALUE itself, and gets block types
// alone.
#include "base/half.h"
#include "kernels/dequantize_layout.h"
#include "kernels/dequantize_rows.h"
#include "kernels/vec.h"

#include <string.h>

#define INLINE      static inline __attribute__((always_inline))
#define UNROLLED    _Pragma("GCC unroll 16")
#define BLOCK(type) INLINE void type(const unsigned char *b, VALUE *y)

INLINE float half_at(const unsigned char *p) {
    return vf_half(st_u16_at(p));
}

// The low nibbles of n bytes, then the high ones, each less `zero`.
INLINE void nibbles(const unsigned char *p, int n, int zero, int8_t *q) {
    for (int i = 0; i < n; i++) q[i] = (int8_t)((p[i] & 15) - zero);
    for (int i = 0; i < n; i++) q[n + i] = (int8_t)((p[i] >> 4) - zero);
}

#ifndef VALUE
#define VALUE float
#define PLAIN_TYPES

// y[i] = q[i] d
INLINE void scaled(const int8_t *q, int n, float d, float *y) {
    vf step = vf_set1(d);
    UNROLLED for (int i = 0; i < n; i += VF_LANES) vf_store(y + i, vf_mul(vf_load_i8(q + i), step));
}

// 32 elements, each half with its own d.
INLINE void halves_scaled(const int8_t *q, const float d[2], float *y) {
    scaled(q, 16, d[0], y);
    scaled(q + 16, 16, d[1], y + 16);
}

// y[i] = q[i] d + m
INLINE void scaled_from(const int8_t *q, int n, float d, float m, float *y) {
    vf step = vf_set1(d), from = vf_set1(m);
    UNROLLED for (int i = 0; i < n; i += VF_LANES)
        vf_store(y + i, vf_fma(vf_load_i8(q + i), step, from));
}

// 32 elements, the low nibbles of 16 bytes and then the high ones: y = (code - zero) d + m.
INLINE void nibbles_scaled(const unsigned char *p, int zero, float d, float m, float *y) {
    int8_t q[32];
    nibbles(p, 16, zero, q);
    scaled_from(q, 32, d, m, y);
}

// The same with fifth bits.
INLINE void five_bits_scaled(uint32_t fifth, const unsigned char *p, int zero, float d, float m,
                             float *y) {
    int8_t high[32], q[32];
    vec_bits_times_16(fifth, high);
    for (int i = 0; i < 16; i++) q[i] = (int8_t)((p[i] & 15) + high[i] - zero);
    for (int i = 0; i < 16; i++) q[16 + i] = (int8_t)((p[i] >> 4) + high[16 + i] - zero);
    scaled_from(q, 32, d, m, y);
}

// y = values[code] d
INLINE void values_scaled(const int8_t values[16], const unsigned char *p, float d, float *y) {
    int8_t q[32];
    vec_nibble_values(values, p, q);
    scaled(q, 32, d, y);
}

// 64 elements of two parts, the nibbles of 32 bytes: y = code d - m, each part with its own.
INLINE void two_parts(const unsigned char *p, const float *d, const float *m, float *y) {
    int8_t q[64];
    nibbles(p, 32, 0, q);
    scaled_from(q, 32, d[0], -m[0], y);
    scaled_from(q + 32, 32, d[1], -m[1], y + 32);
}

// The same with a fifth bit in bits `part` and `part` + 1 of 32 bytes.
INLINE void two_parts_of_five(const unsigned char *fifth, int part, const unsigned char *p,
                              const float *d, const float *m, float *y) {
    int8_t q[64];
    uint8_t first = (uint8_t)(1 << part), second = (uint8_t)(2 << part);
    nibbles(p, 32, 0, q);
    for (int i = 0; i < 32; i++) q[i] = (int8_t)(q[i] | ((fifth[i] & first) ? 16 : 0));
    for (int i = 0; i < 32; i++) q[32 + i] = (int8_t)(q[32 + i] | ((fifth[i] & second) ? 16 : 0));
    scaled_from(q, 32, d[0], -m[0], y);
    scaled_from(q + 32, 32, d[1], -m[1], y + 32);
}
#endif

// ---- 32 elements. A minimum of -0 changes no bit.

BLOCK(q4_0) {
    nibbles_scaled(b + 2, 8, half_at(b), -0.0f, y);
}

BLOCK(q4_1) {
    nibbles_scaled(b + 4, 0, half_at(b), half_at(b + 2), y);
}

BLOCK(q5_0) {
    five_bits_scaled(st_u32_at(b + 2), b + 6, 16, half_at(b), -0.0f, y);
}

BLOCK(q5_1) {
    five_bits_scaled(st_u32_at(b + 4), b + 8, 0, half_at(b), half_at(b + 2), y);
}

BLOCK(q8_0) {
    scaled((const int8_t *)b + 2, 32, half_at(b), y);
}

BLOCK(iq4_nl) {
    values_scaled(st_iq4_values, b + 2, half_at(b), y);
}

BLOCK(mxfp4) {
    values_scaled(st_mxfp4_values, b + 1, st_mxfp4_scale(b[0]), y);
}

// ---- 256 elements

// 128 two-bit codes of 32 bytes, bits 0 and 1 first.
INLINE void pairs(const unsigned char *p, int8_t *q) {
    for (int i = 0; i < 32; i++) q[i] = (int8_t)(p[i] & 3);
    for (int i = 0; i < 32; i++) q[32 + i] = (int8_t)(p[i] >> 2 & 3);
    for (int i = 0; i < 32; i++) q[64 + i] = (int8_t)(p[i] >> 4 & 3);
    for (int i = 0; i < 32; i++) q[96 + i] = (int8_t)(p[i] >> 6);
}

BLOCK(q2_k) {
    float d = half_at(b + 80), dmin = half_at(b + 82);
    int8_t q[256];
    pairs(b + 16, q);
    pairs(b + 48, q + 128);
    UNROLLED for (int part = 0; part < 16; part++)
        scaled_from(q + part * 16, 16, d * (float)(b[part] & 15), -(dmin * (float)(b[part] >> 4)),
                    y + part * 16);
}

BLOCK(q3_k) {
    float d = half_at(b + 108);
    int8_t q[256];
    pairs(b + 32, q);
    pairs(b + 64, q + 128);
    for (int row = 0; row < 8; row++) { // a third bit that is not set takes 4 away
        uint8_t bit = (uint8_t)(1 << row);
        for (int i = 0; i < 32; i++)
            q[row * 32 + i] = (int8_t)(q[row * 32 + i] - ((b[i] & bit) ? 0 : 4));
    }
    UNROLLED for (int part = 0; part < 16; part += 2) {
        const float steps[2] = {d * (float)st_q3_k_scale(b + 96, part),
                                d * (float)st_q3_k_scale(b + 96, part + 1)};
        halves_scaled(q + part * 16, steps, y + part * 16);
    }
}

// Scales and minima of the 8 parts of q4_k and q5_k.
INLINE void k_scales(const unsigned char *b, float *scale, float *minimum) {
    float d = half_at(b), dmin = half_at(b + 2);
    uint32_t low = st_u32_at(b + 4), middle = st_u32_at(b + 8), high = st_u32_at(b + 12);
    uint32_t words[4] = {low & 0x3f3f3f3f, (high & 0x0f0f0f0f) | (low >> 2 & 0x30303030),
                         middle & 0x3f3f3f3f,
                         (high >> 4 & 0x0f0f0f0f) | (middle >> 2 & 0x30303030)};
    uint8_t bytes[16];
    memcpy(bytes, words, sizeof bytes);
    for (int i = 0; i < 8; i++) scale[i] = d * (float)bytes[i];
    for (int i = 0; i < 8; i++) minimum[i] = dmin * (float)bytes[8 + i];
}

BLOCK(q4_k) {
    float d[8], m[8];
    k_scales(b, d, m);
    UNROLLED for (int part = 0; part < 8; part += 2)
        two_parts(b + 16 + part * 16, d + part, m + part, y + part * 32);
}

BLOCK(q5_k) {
    float d[8], m[8];
    k_scales(b, d, m);
    UNROLLED for (int part = 0; part < 8; part += 2)
        two_parts_of_five(b + 16, part, b + 48 + part * 16, d + part, m + part, y + part * 32);
}

// 32 codes of four bits of `low` and two of `high`, less 32. GCC shifts bytes to the left by adding
// them to themselves, one place at a time, so shifts are as short as can be.
INLINE void six_bits(const unsigned char *low, int low_bit, const unsigned char *high, int high_bit,
                     int8_t *q) {
    int up = high_bit < 4 ? 4 - high_bit : 0, down = high_bit > 4 ? high_bit - 4 : 0;
    for (int i = 0; i < 32; i++)
        q[i] = (int8_t)(((low[i] >> low_bit & 15) | (high[i] << up >> down & 0x30)) - 32);
}

BLOCK(q6_k) {
    float d = half_at(b + 208), steps[16];
    int8_t q[256];
    for (int i = 0; i < 16; i++) steps[i] = d * (float)(int8_t)b[192 + i];
    UNROLLED for (int i = 0; i < 8; i++) six_bits(b + i / 4 * 64 + i % 2 * 32, i % 4 / 2 * 4,
                                                  b + 128 + i / 4 * 32, i % 4 * 2, q + 32 * i);
    UNROLLED for (int part = 0; part < 16; part += 2)
        halves_scaled(q + part * 16, steps + part, y + part * 16);
}

BLOCK(iq4_xs) {
    float d = half_at(b);
    UNROLLED for (int part = 0; part < 8; part++) values_scaled(
        st_iq4_values, b + 8 + part * 16, d * (float)st_iq4_xs_scale(b, part), y + part * 32);
}

// The digits of n bytes that lie behind the first `power`, which is 3 to that number, less 1.
INLINE void digits(const unsigned char *p, int n, uint8_t power, int8_t *q) {
    for (int i = 0; i < n; i++) q[i] = (int8_t)(st_tq1_0_digit((uint8_t)(p[i] * power)) - 1);
}

BLOCK(tq1_0) {
    static const uint8_t powers[5] = {1, 3, 9, 27, 81};
    int8_t q[256];
    for (int i = 0; i < 5; i++) digits(b, 32, powers[i], q + 32 * i);
    for (int i = 0; i < 5; i++) digits(b + 32, 16, powers[i], q + 160 + 16 * i);
    for (int i = 0; i < 4; i++) digits(b + 48, 4, powers[i], q + 240 + 4 * i);
    scaled(q, 256, half_at(b + 52), y);
}

BLOCK(tq2_0) {
    int8_t q[256];
    pairs(b, q);
    pairs(b + 32, q + 128);
    for (int i = 0; i < 256; i++) q[i]--;
    scaled(q, 256, half_at(b + 64), y);
}

#define DEQUANTIZE_BLOCKS(id, type, isa)                                                           \
    void NAME(type)(const void *src, size_t first, size_t n, VALUE *dst) {                         \
        const unsigned char *b =                                                                   \
            (const unsigned char *)src + first / ST_##id##_ITEMS * ST_##id##_BYTES;                \
        for (size_t i = 0; i < n; i += ST_##id##_ITEMS, b += ST_##id##_BYTES) type(b, dst + i);    \
    }

ST_BLOCK_TYPES(DEQUANTIZE_BLOCKS, )

#ifdef PLAIN_TYPES
void NAME(f32)(const void *src, size_t first, size_t n, float *dst) {
    if (n) memcpy(dst, (const unsigned char *)src + first * sizeof(float), n * sizeof(float));
}

// Whole vectors, then the rest one by one.
void NAME(f16)(const void *src, size_t first, size_t n, float *dst) {
    const unsigned char *from = (const unsigned char *)src + 2 * first;
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) vf_store(dst + i, vf_load_f16(from + 2 * i));
    for (; i < n; i++) dst[i] = half_at(from + 2 * i);
}

void NAME(bf16)(const void *src, size_t first, size_t n, float *dst) {
    const unsigned char *from = (const unsigned char *)src + 2 * first;
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) vf_store(dst + i, vf_load_bf16(from + 2 * i));
    for (; i < n; i++) dst[i] = st_f32_from_bf16(st_u16_at(from + 2 * i));
}
#endif

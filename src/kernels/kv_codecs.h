// SPDX-License-Identifier: Apache-2.0
// How each type of kv_types.h writes and reads a row of n values. A type gives
// - kv_<type>_store: a row from floats;
// - kv_<type>_at: value d, which is the definition;
// - kv_<type>_part: count values from d on in a vector, then zeros. d is a multiple of VF_LANES, so
//   they lie in one block. Only in files that include vec.h.
#ifndef ST_KERNELS_KV_CODECS_H
#define ST_KERNELS_KV_CODECS_H

#include "base/half.h"
#include "kernels/kv_types.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline void kv_f32_store(const float *x, size_t n, void *row) {
    memcpy(row, x, n * sizeof *x);
}

static inline float kv_f32_at(const void *row, size_t n, size_t d) {
    (void)n;
    return ((const float *)row)[d];
}

static inline float kv_f16_at(const void *row, size_t n, size_t d) {
    (void)n;
    return st_f32_from_f16(((const uint16_t *)row)[d]);
}

// q8: 8-bit codes, then the blocks' scales in BF16. A scale is the largest of its block over 127,
// rounded up, so no code is clipped. Infinity and NaN make a scale that is none, so a model that
// has lost its numbers does not find them again in the cache.
static inline float kv_q8_scale(const void *row, size_t n, size_t d) {
    uint16_t scale;
    memcpy(&scale, (const char *)row + n + d / ST_KV_BLOCK * sizeof scale, sizeof scale);
    return st_f32_from_bf16(scale);
}

static inline uint16_t kv_q8_scale_of(const float *x, size_t n) {
    uint32_t largest = 0; // as bits, whose order is that of the sizes, with NaN above all
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = st_float_bits(x[i]) & 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    if (largest > 0x7f800000u) return 0x7fc0;
    float scale = st_float_from_bits(largest) / 127.0f;
    if (scale < 1e-30f) return 0;
    return (uint16_t)((st_float_bits(scale) + 0xffffu) >> 16);
}

static inline void kv_q8_store(const float *x, size_t n, void *row) {
    int8_t *codes = row;
    for (size_t d = 0; d < n; d += ST_KV_BLOCK) {
        size_t count = n - d < ST_KV_BLOCK ? n - d : ST_KV_BLOCK;
        uint16_t bits = kv_q8_scale_of(x + d, count);
        float scale = st_f32_from_bf16(bits), inverse = bits ? 1.0f / scale : 0.0f;
        bool finite = bits < 0x7f80;
        for (size_t i = 0; i < count; i++)
            codes[d + i] = finite ? (int8_t)rintf(x[d + i] * inverse) : 0;
        memcpy(codes + n + d / ST_KV_BLOCK * sizeof bits, &bits, sizeof bits);
    }
}

static inline float kv_q8_at(const void *row, size_t n, size_t d) {
    return kv_q8_scale(row, n, d) * (float)((const int8_t *)row)[d];
}

#ifdef VF_LANES

static inline vf kv_q8_part(const void *row, size_t n, size_t d, size_t count) {
    const int8_t *from = (const int8_t *)row + d;
    int8_t t[VF_LANES] = {0};
    if (count < VF_LANES) from = memcpy(t, from, count);
    return vf_mul(vf_load_i8(from), vf_set1(kv_q8_scale(row, n, d)));
}

static inline vf kv_f32_part(const void *row, size_t n, size_t d, size_t count) {
    (void)n;
    const float *from = (const float *)row + d;
    return count == VF_LANES ? vf_load(from) : vf_load_n(from, count);
}

static inline void kv_f16_store(const float *x, size_t n, void *row) {
    uint16_t *to = row;
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) vf_store_f16(to + i, vf_load(x + i));
    for (; i < n; i++) to[i] = st_f16_from_f32(x[i]);
}

static inline vf kv_f16_part(const void *row, size_t n, size_t d, size_t count) {
    (void)n;
    const uint16_t *from = (const uint16_t *)row + d;
    if (count == VF_LANES) return vf_load_f16(from);
    uint16_t t[VF_LANES] = {0};
    memcpy(t, from, count * sizeof *t);
    return vf_load_f16(t);
}

#else

static inline void kv_f16_store(const float *x, size_t n, void *row) {
    for (size_t i = 0; i < n; i++) ((uint16_t *)row)[i] = st_f16_from_f32(x[i]);
}

#endif
#endif

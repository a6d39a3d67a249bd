// SPDX-License-Identifier: Apache-2.0
// Blocks to BF16, for products that take pairs (kernels/pairs.h). A part of 4 or 5 bits has at most
// 32 different values: they are computed once, rounded, and looked up for all of its codes.
#include <immintrin.h>
#include <stdint.h>

#define LOCAL      static inline __attribute__((always_inline))
#define VALUE      uint16_t
#define NAME(type) st_dequantize_bf16_##type##_avx512bf16

LOCAL __m512 codes_at(const int8_t *q) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)q)));
}

// y[i] = q[i] d + m, n a multiple of 16
LOCAL void scaled_from(const int8_t *q, int n, float d, float m, uint16_t *y) {
    __m512 step = _mm512_set1_ps(d), from = _mm512_set1_ps(m);
    int i = 0;
#pragma GCC unroll 16
    for (; i + 32 <= n; i += 32) {
        __m512 first = _mm512_fmadd_ps(codes_at(q + i), step, from);
        __m512 second = _mm512_fmadd_ps(codes_at(q + i + 16), step, from);
        _mm512_storeu_si512(y + i, (__m512i)_mm512_cvtne2ps_pbh(second, first));
    }
    if (i < n)
        _mm256_storeu_si256((void *)(y + i), (__m256i)_mm512_cvtneps_pbh(
                                                 _mm512_fmadd_ps(codes_at(q + i), step, from)));
}

// y[i] = q[i] d: a zero to add keeps the sign of every value but that of 0.
LOCAL void scaled(const int8_t *q, int n, float d, uint16_t *y) {
    scaled_from(q, n, d, -0.0f, y);
}

// 32 elements, each half with its own d.
LOCAL void halves_scaled(const int8_t *q, const float d[2], uint16_t *y) {
    __m512 first = _mm512_mul_ps(codes_at(q), _mm512_set1_ps(d[0]));
    __m512 second = _mm512_mul_ps(codes_at(q + 16), _mm512_set1_ps(d[1]));
    _mm512_storeu_si512(y, (__m512i)_mm512_cvtne2ps_pbh(second, first));
}

// codes [16] d + m
LOCAL __m512 line(__m512 codes, float d, float m) {
    return _mm512_fmadd_ps(codes, _mm512_set1_ps(d), _mm512_set1_ps(m));
}

// from, from + 1, ... from + 15
LOCAL __m512 codes_from(int from) {
    const __m512i upwards = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_cvtepi32_ps(_mm512_add_epi32(upwards, _mm512_set1_epi32(from)));
}

// A table of 16 values, twice, so that the fifth bit of an index does not count.
LOCAL __m512i table_of_16(__m512 values) {
    return _mm512_broadcast_i64x4((__m256i)_mm512_cvtneps_pbh(values));
}

// The table for codes of 5 bits.
LOCAL __m512i table_of_32(int zero, float d, float m) {
    return (__m512i)_mm512_cvtne2ps_pbh(line(codes_from(16 - zero), d, m),
                                        line(codes_from(-zero), d, m));
}

// 16 bytes: words whose lowest bits are the low nibbles, then the high ones.
LOCAL __m512i spread(const unsigned char *p) {
    const __m512i shifts = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(4), 1);
    __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)p));
    return _mm512_srlv_epi16(_mm512_cvtepu8_epi16(twice), shifts);
}

LOCAL void look_up(__m512i table, __m512i codes, uint16_t *y) {
    _mm512_storeu_si512(y, _mm512_permutexvar_epi16(codes, table));
}

LOCAL __m512i with_fifth(__m512i codes, __mmask32 fifth) {
    __m512i low = _mm512_and_si512(codes, _mm512_set1_epi16(15));
    return _mm512_mask_add_epi16(low, fifth, low, _mm512_set1_epi16(16));
}

LOCAL void nibbles_scaled(const unsigned char *p, int zero, float d, float m, uint16_t *y) {
    look_up(table_of_16(line(codes_from(-zero), d, m)), spread(p), y);
}

LOCAL void five_bits_scaled(uint32_t fifth, const unsigned char *p, int zero, float d, float m,
                            uint16_t *y) {
    look_up(table_of_32(zero, d, m), with_fifth(spread(p), fifth), y);
}

LOCAL void values_scaled(const int8_t values[16], const unsigned char *p, float d, uint16_t *y) {
    look_up(table_of_16(line(codes_at(values), d, -0.0f)), spread(p), y);
}

LOCAL void two_parts(const unsigned char *p, const float *d, const float *m, uint16_t *y) {
    __m512i codes = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)p));
    look_up(table_of_16(line(codes_from(0), d[0], -m[0])), codes, y);
    look_up(table_of_16(line(codes_from(0), d[1], -m[1])), _mm512_srli_epi16(codes, 4), y + 32);
}

LOCAL void two_parts_of_five(const unsigned char *fifth, int part, const unsigned char *p,
                             const float *d, const float *m, uint16_t *y) {
    __m512i codes = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)p));
    __m512i bits = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)fifth));
    __mmask32 first = _mm512_test_epi16_mask(bits, _mm512_set1_epi16((short)(1 << part)));
    __mmask32 second = _mm512_test_epi16_mask(bits, _mm512_set1_epi16((short)(2 << part)));
    look_up(table_of_32(0, d[0], -m[0]), with_fifth(codes, first), y);
    look_up(table_of_32(0, d[1], -m[1]), with_fifth(_mm512_srli_epi16(codes, 4), second), y + 32);
}

#include "kernels/dequantize_body.h"

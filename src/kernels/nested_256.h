// SPDX-License-Identifier: Apache-2.0
// Two rows at once, for nested_body.h; what is missing is vi_add.
#ifndef ST_KERNELS_NESTED_256_H
#define ST_KERNELS_NESTED_256_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 2, PARTS = 4 };

typedef __m256i vb, vi, vs;
typedef __m256 vf, vm;
typedef struct {
    __m256i low, high; // four of each row
} vl;

static inline vb vb_load(const void *p) {
    return _mm256_loadu_si256(p);
}
static inline vb vb_x(const void *p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(p));
}
static inline vb vb_and(vb v, uint8_t mask) {
    return _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
}
static inline vb vb_select(uint8_t mask, vb a, vb b) {
    const vb m = _mm256_set1_epi8((char)mask);
    return _mm256_or_si256(_mm256_and_si256(m, a), _mm256_andnot_si256(m, b));
}
static inline vb vb_double(vb v) {
    return _mm256_add_epi8(v, v);
}
static inline vb vb_append(vb a, vb b) {
    return _mm256_or_si256(vb_double(a), vb_and(b, 1));
}
#define vb_shl(v, n) _mm256_slli_epi16(v, n)
#define vb_shr(v, n) _mm256_srli_epi16(v, n)
static inline vb vb_append_low(vb a, vb b) {
    return _mm256_or_si256(vb_and(vb_double(a), 30), vb_and(b, 1));
}
static inline vb vb_append_high(vb a, vb b) {
    return _mm256_or_si256(vb_and(vb_shr(a, 3), 30), vb_and(b, 1));
}

static inline vs vs_load(const uint8_t *p) {
    int64_t two_rows;
    memcpy(&two_rows, p, sizeof two_rows);
    return _mm256_set1_epi64x(two_rows);
}
// Bytes 0 and 4 behind g, each as eight 16-bit numbers.
static inline vi vs_group(vs scales, unsigned g) {
    const __m256i rows =
        _mm256_set_m128i(_mm_set1_epi16((short)0xff04), _mm_set1_epi16((short)0xff00));
    return _mm256_shuffle_epi8(scales, _mm256_add_epi8(rows, _mm256_set1_epi16((short)g)));
}
static inline vi vi_zero(void) {
    return _mm256_setzero_si256();
}
static inline vf vf_zero(void) {
    return _mm256_setzero_ps();
}
static inline vf vf_add_scaled(vf sum, vi exact, float scale) {
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(exact), _mm256_set1_ps(scale), sum);
}
static inline void vf_rows(const vf v[PARTS], float rows[8]) {
    __m256 sums = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_ps(rows, _mm256_permutevar8x32_ps(sums, order));
}

static inline vl vl_load(const uint8_t *p) {
    return (vl){_mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)p)),
                _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(p + 16)))};
}
static inline vl vl_load_half(const uint8_t *p) {
    __m128i v = _mm_loadu_si128((const void *)p);
    return (vl){_mm256_cvtepi8_epi16(v), _mm256_cvtepi8_epi16(_mm_srli_epi32(v, 16))};
}
static inline vm vm_zero(void) {
    return _mm256_setzero_ps();
}
// Of rows 0, 1, 4, 5 | 2, 3, 6, 7.
static inline vm vm_add(vm sum, vl minima, const int16_t *sums, float scale) {
    int64_t four;
    memcpy(&four, sums, sizeof four);
    __m256i low = _mm256_madd_epi16(minima.low, _mm256_set1_epi64x(four));
    __m256i high = _mm256_madd_epi16(minima.high, _mm256_set1_epi64x(four));
    return vf_add_scaled(sum, _mm256_hadd_epi32(low, high), scale);
}
static inline void vm_rows(vm v, float rows[8]) {
    __m256d pairs = _mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8);
    _mm256_storeu_ps(rows, _mm256_castpd_ps(pairs));
}

#endif

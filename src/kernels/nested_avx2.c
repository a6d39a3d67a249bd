// SPDX-License-Identifier: Apache-2.0
// Two rows at once. Codes of at most 6 bits: the products of a group fit 16 bits.
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NAME     st_nested_avx2
#define QUANTIZE st_nested_quantize_avx2

enum { LANES = 2 };

typedef __m256i vb, vi, vs;
typedef __m256 vf;
typedef struct {
    __m256 low, high; // two of each row
} vm;

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
static inline vb vb_lookup(vb table, vb index) {
    return _mm256_shuffle_epi8(table, index);
}
#define vb_shl(v, n) _mm256_slli_epi16(v, n)
#define vb_shr(v, n) _mm256_srli_epi16(v, n)

static inline vs vs_load(const uint8_t *p) {
    return _mm256_broadcastsi128_si256(_mm_loadl_epi64((const void *)p));
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
static inline vi vi_add(vi sum, unsigned bits, vs scales, unsigned g, vb v0, vb x0, vb v1, vb x1) {
    __m256i first = _mm256_maddubs_epi16(v0, x0), second = _mm256_maddubs_epi16(v1, x1);
    vi scale = vs_group(scales, g);
    if (bits <= 6)
        return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_add_epi16(first, second), scale));
    return _mm256_add_epi32(_mm256_add_epi32(sum, _mm256_madd_epi16(first, scale)),
                            _mm256_madd_epi16(second, scale));
}
static inline vf vf_zero(void) {
    return _mm256_setzero_ps();
}
static inline vf vf_add_scaled(vf sum, vi exact, float scale) {
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(exact), _mm256_set1_ps(scale), sum);
}
static inline void vf_rows(vf v, float rows[LANES]) {
    v = _mm256_add_ps(v, _mm256_shuffle_ps(v, v, 0xb1));
    v = _mm256_add_ps(v, _mm256_shuffle_ps(v, v, 0x4e));
    rows[0] = _mm256_cvtss_f32(v);
    rows[1] = _mm_cvtss_f32(_mm256_extractf128_ps(v, 1));
}

static inline vm vm_zero(void) {
    return (vm){_mm256_setzero_ps(), _mm256_setzero_ps()};
}
// Of four rows: two products of two groups for each, twice.
static inline __m256i four_rows(const uint8_t *minima, int64_t sums) {
    __m256i rows = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)minima));
    __m256i exact = _mm256_madd_epi16(rows, _mm256_set1_epi64x(sums));
    return _mm256_add_epi32(exact, _mm256_shuffle_epi32(exact, 0xb1));
}
static inline vm vm_add(vm sum, const uint8_t *minima, const int16_t *sums, float scale) {
    int64_t four;
    memcpy(&four, sums, sizeof four);
    return (vm){vf_add_scaled(sum.low, four_rows(minima, four), scale),
                vf_add_scaled(sum.high, four_rows(minima + 16, four), scale)};
}
static inline void vm_rows(vm v, float rows[8]) {
    const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    _mm_storeu_ps(rows, _mm256_castps256_ps128(_mm256_permutevar8x32_ps(v.low, even)));
    _mm_storeu_ps(rows + 4, _mm256_castps256_ps128(_mm256_permutevar8x32_ps(v.high, even)));
}

#include "kernels/nested_body.h"
#include "kernels/nested_quantize.h"

// SPDX-License-Identifier: Apache-2.0
// Four rows at once. Codes of at most 6 bits: four products of a group fit 16 bits, so that one
// vpdpwssd scales and adds them; of at most 5 bits: eight, so that it does for two groups.
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NAME     st_nested_avx512vnni
#define QUANTIZE st_nested_quantize_avx512
#define REST     st_nested_rest_avx512

enum { LANES = 4, PARTS = 2 };

typedef __m512i vb, vi, vs, vl;
typedef __m512 vf, vm;

static inline vb vb_load(const void *p) {
    return _mm512_loadu_si512(p);
}
static inline vb vb_x(const void *p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(p));
}
static inline vb vb_and(vb v, uint8_t mask) {
    return _mm512_and_si512(v, _mm512_set1_epi8((char)mask));
}
static inline vb vb_select(uint8_t mask, vb a, vb b) {
    return _mm512_ternarylogic_epi64(_mm512_set1_epi8((char)mask), a, b, 0xca);
}
static inline vb vb_double(vb v) {
    return _mm512_add_epi8(v, v);
}
static inline vb vb_append(vb a, vb b) {
    return vb_select(1, b, vb_double(a));
}
#define vb_shl(v, n) _mm512_slli_epi16(v, n)
#define vb_shr(v, n) _mm512_srli_epi16(v, n)
static inline vb vb_append_low(vb a, vb b) {
    return vb_select(1, b, vb_and(vb_double(a), 30));
}
static inline vb vb_append_high(vb a, vb b) {
    return vb_select(1, b, vb_and(vb_shr(a, 3), 30));
}

static inline vs vs_load(const uint8_t *p) {
    return vb_x(p);
}
// Bytes 0, 4, 8 and 12 behind g, each as eight 16-bit numbers.
static inline vi vs_group(vs scales, unsigned g) {
    const __m512i rows =
        _mm512_inserti32x4(_mm512_inserti32x4(_mm512_inserti32x4(_mm512_set1_epi16((short)0xff00),
                                                                 _mm_set1_epi16((short)0xff04), 1),
                                              _mm_set1_epi16((short)0xff08), 2),
                           _mm_set1_epi16((short)0xff0c), 3);
    return _mm512_shuffle_epi8(scales, _mm512_add_epi8(rows, _mm512_set1_epi16((short)g)));
}
static inline vi vi_zero(void) {
    return _mm512_setzero_si512();
}
static inline vi vi_add(vi sum, unsigned bits, vs scales, unsigned g, vb v0, vb x0, vb v1, vb x1) {
    __m512i first = _mm512_maddubs_epi16(v0, x0), second = _mm512_maddubs_epi16(v1, x1);
    vi scale = vs_group(scales, g);
    if (bits <= 6) return _mm512_dpwssd_epi32(sum, _mm512_add_epi16(first, second), scale);
    return _mm512_dpwssd_epi32(_mm512_dpwssd_epi32(sum, first, scale), second, scale);
}
static inline vf vf_zero(void) {
    return _mm512_setzero_ps();
}
static inline vf vf_add_scaled(vf sum, vi exact, float scale) {
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), _mm512_set1_ps(scale), sum);
}
static inline void four_rows(vf v, float rows[LANES]) {
    v = _mm512_add_ps(v, _mm512_shuffle_ps(v, v, 0xb1));
    v = _mm512_add_ps(v, _mm512_shuffle_ps(v, v, 0x4e));
    const __m512i first = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    _mm_storeu_ps(rows, _mm512_castps512_ps128(_mm512_permutexvar_ps(first, v)));
}
static inline void vf_rows(const vf v[PARTS], float rows[8]) {
    four_rows(v[0], rows);
    four_rows(v[1], rows + LANES);
}

static inline vl vl_load(const uint8_t *p) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const void *)p));
}
static inline vl vl_load_half(const uint8_t *p) {
    __m128i v = _mm_loadu_si128((const void *)p);
    return _mm512_cvtepi8_epi16(_mm256_set_m128i(_mm_srli_epi32(v, 16), v));
}
static inline vm vm_zero(void) {
    return _mm512_setzero_ps();
}
// Two products of two groups for each row.
static inline vm vm_add(vm sum, vl minima, const int16_t *sums, float scale) {
    int64_t four;
    memcpy(&four, sums, sizeof four);
    __m512i exact = _mm512_madd_epi16(minima, _mm512_set1_epi64(four));
    exact = _mm512_add_epi32(exact, _mm512_shuffle_epi32(exact, 0xb1));
    return vf_add_scaled(sum, exact, scale);
}
static inline void vm_rows(vm v, float rows[8]) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 0, 0, 0, 0, 0, 0, 0, 0);
    _mm256_storeu_ps(rows, _mm512_castps512_ps256(_mm512_permutexvar_ps(even, v)));
}

#include "kernels/nested_codes.h"

#define TWO_GROUPS 5
// Bytes g and g + 1 behind 0, 4, 8 and 12, each as four 16-bit numbers.
INLINE vi vs_two_groups(vs scales, unsigned g) {
    const short first = (short)0xff00, second = (short)0xff01;
    const __m128i row = _mm_setr_epi16(first, first, first, first, second, second, second, second);
    const __m512i rows = _mm512_add_epi16(
        _mm512_broadcast_i32x4(row),
        _mm512_inserti32x4(
            _mm512_inserti32x4(_mm512_inserti32x4(_mm512_setzero_si512(), _mm_set1_epi16(4), 1),
                               _mm_set1_epi16(8), 2),
            _mm_set1_epi16(12), 3));
    return _mm512_shuffle_epi8(scales, _mm512_add_epi16(rows, _mm512_set1_epi16((short)g)));
}
INLINE vi eight_products(vb v0, vb x0, vb v1, vb x1) {
    return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(vi_zero(), v0, x0), v1, x1);
}
INLINE vi vi_add_two(vi sum, vs scales, unsigned g, const struct four *v, const vb x[4]) {
    vi first = eight_products(v->f0, x[0], v->f1, x[1]);
    vi second = eight_products(v->f2, x[2], v->f3, x[3]);
    return _mm512_dpwssd_epi32(sum, _mm512_packs_epi32(first, second), vs_two_groups(scales, g));
}

#include "kernels/nested_body.h"
#include "kernels/nested_quantize.h"

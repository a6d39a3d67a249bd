// SPDX-License-Identifier: Apache-2.0
// Four rows at once. vpdpbusd wants centroids without sign: 128 too much each, which a block's sum
// begins with the negative of.
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define NAME     st_nested_avx512vnni
#define QUANTIZE st_nested_quantize_avx512

enum { LANES = 4, FLIP = 0x80 };

typedef __m512i vb, vi;
typedef __m512 vf;

static inline vb vb_load(const void *p) {
    return _mm512_loadu_si512(p);
}
static inline vb vb_x(const void *p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(p));
}
static inline vb vb_rows(const int8_t *rows, unsigned bits) {
    const __m512i dwords = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m512i qwords = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
    const void *p = rows;
    if (bits == 2)
        return _mm512_permutexvar_epi32(dwords, _mm512_castsi128_si512(_mm_loadu_si128(p)));
    if (bits == 3)
        return _mm512_permutexvar_epi64(qwords, _mm512_castsi256_si512(_mm256_loadu_si256(p)));
    return vb_load(p);
}
static inline vb vb_and(vb v, uint8_t mask) {
    return _mm512_and_si512(v, _mm512_set1_epi8((char)mask));
}
static inline vb vb_xor(vb v, uint8_t mask) {
    return _mm512_xor_si512(v, _mm512_set1_epi8((char)mask));
}
static inline vb vb_select(uint8_t mask, vb a, vb b) {
    return _mm512_ternarylogic_epi64(_mm512_set1_epi8((char)mask), a, b, 0xca);
}
static inline vb vb_lookup(vb table, vb index) {
    return _mm512_shuffle_epi8(table, index);
}
static inline vb vb_equal(vb v, uint8_t to) {
    return _mm512_movm_epi8(_mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8((char)to)));
}
static inline vb vb_blend(vb a, vb b, vb where) {
    return _mm512_ternarylogic_epi64(where, b, a, 0xca);
}
#define vb_shl(v, n) _mm512_slli_epi16(v, n)
#define vb_shr(v, n) _mm512_srli_epi16(v, n)

static inline vi vi_start(int32_t offset) {
    return _mm512_maskz_set1_epi32(0x1111, offset);
}
static inline vi vi_dot(vi sum, vb value, vb x) {
    return _mm512_dpbusd_epi32(sum, value, x);
}
static inline vf vf_zero(void) {
    return _mm512_setzero_ps();
}
static inline vf vf_add_scaled(vf sum, vi exact, float scale) {
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), _mm512_set1_ps(scale), sum);
}
static inline void vf_rows(vf v, float rows[LANES]) {
    v = _mm512_add_ps(v, _mm512_shuffle_ps(v, v, 0xb1));
    v = _mm512_add_ps(v, _mm512_shuffle_ps(v, v, 0x4e));
    const __m512i first = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    _mm_storeu_ps(rows, _mm512_castps512_ps128(_mm512_permutexvar_ps(first, v)));
}

#include "kernels/nested_body.h"
#include "kernels/nested_quantize.h"

// SPDX-License-Identifier: Apache-2.0
// Two rows at once. vpmaddubsw wants one factor without sign: the centroid's goes to the input,
// whose magnitude of at most 127 keeps pairs of products within 16 bits.
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define NAME     st_nested_avx2
#define QUANTIZE st_nested_quantize_avx2

enum { LANES = 2, FLIP = 0 };

typedef __m256i vb, vi;
typedef __m256 vf;

static inline vb vb_load(const void *p) {
    return _mm256_loadu_si256(p);
}
static inline vb vb_x(const void *p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(p));
}
static inline vb vb_rows(const int8_t *rows, unsigned bits) {
    const __m256i dwords = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    const void *p = rows;
    if (bits == 2)
        return _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(_mm_loadl_epi64(p)), dwords);
    if (bits == 3)
        return _mm256_permute4x64_epi64(_mm256_castsi128_si256(_mm_loadu_si128(p)), 0x50);
    return vb_load(p);
}
static inline vb vb_and(vb v, uint8_t mask) {
    return _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
}
static inline vb vb_xor(vb v, uint8_t mask) {
    return _mm256_xor_si256(v, _mm256_set1_epi8((char)mask));
}
static inline vb vb_select(uint8_t mask, vb a, vb b) {
    const vb m = _mm256_set1_epi8((char)mask);
    return _mm256_or_si256(_mm256_and_si256(m, a), _mm256_andnot_si256(m, b));
}
static inline vb vb_lookup(vb table, vb index) {
    return _mm256_shuffle_epi8(table, index);
}
static inline vb vb_equal(vb v, uint8_t to) {
    return _mm256_cmpeq_epi8(v, _mm256_set1_epi8((char)to));
}
static inline vb vb_blend(vb a, vb b, vb where) {
    return _mm256_blendv_epi8(a, b, where);
}
#define vb_shl(v, n) _mm256_slli_epi16(v, n)
#define vb_shr(v, n) _mm256_srli_epi16(v, n)

static inline vi vi_start(int32_t offset) {
    (void)offset; // of centroids without sign
    return _mm256_setzero_si256();
}
static inline vi vi_dot(vi sum, vb value, vb x) {
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(value), _mm256_sign_epi8(x, value));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
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

#include "kernels/nested_body.h"
#include "kernels/nested_quantize.h"

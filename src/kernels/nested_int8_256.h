// SPDX-License-Identifier: Apache-2.0
// Two rows at once.
#ifndef ST_KERNELS_NESTED_INT8_256_H
#define ST_KERNELS_NESTED_INT8_256_H

#include "kernels/nested_int8.h"

#include <immintrin.h>

enum { LANES = 2, TOGETHER = 4 };

typedef __m256i vb, vi;

static inline vb vb_load(const uint8_t *p) {
    return _mm256_loadu_si256((const void *)p);
}
static inline vb vb_flip(uint8_t mask, vb v) {
    return _mm256_xor_si256(v, _mm256_set1_epi8((char)mask));
}
static inline vb vb_select(uint8_t mask, vb a, vb b) {
    const vb m = _mm256_set1_epi8((char)mask);
    return _mm256_or_si256(_mm256_and_si256(m, a), _mm256_andnot_si256(m, b));
}
#define vb_shl(v, n) _mm256_slli_epi16(v, n)
#define vb_shr(v, n) _mm256_srli_epi16(v, n)
static inline __attribute__((always_inline)) void swap(vb shifted, uint8_t mask, vb *a, vb *b,
                                                       unsigned n) {
    vb differs = _mm256_and_si256(_mm256_xor_si256(shifted, *b), _mm256_set1_epi8((char)mask));
    *b = _mm256_xor_si256(*b, differs);
    *a = _mm256_xor_si256(*a, _mm256_slli_epi16(differs, (int)n));
}
#define vb_swap(n, mask, a, b) swap(vb_shr(*(a), n), mask, a, b, n)

// Words 0 to 3 of the two rows' groups, in both halves.
struct grid {
    __m256i step, least;
};

// A row's number for each of its four groups.
static inline __m128i of_rows(int16_t row0, int16_t row1) {
    return _mm_unpacklo_epi64(_mm_set1_epi16(row0), _mm_set1_epi16(row1));
}

static inline struct grid grid_of(const uint8_t *scales_at, const uint8_t *minima_at,
                                  const struct st_nested_int8_row *rows, int16_t middle) {
    __m128i scales = _mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)scales_at));
    __m128i minima = _mm_cvtepi8_epi16(_mm_loadl_epi64((const void *)minima_at));
    __m128i step = _mm_mulhrs_epi16(_mm_slli_epi16(scales, 7), of_rows(rows[0].step, rows[1].step));
    __m128i least =
        _mm_mulhrs_epi16(_mm_slli_epi16(minima, 8), of_rows(rows[0].minimum, rows[1].minimum));
    least = _mm_sub_epi16(least, _mm_mulhrs_epi16(_mm_set1_epi16(middle), step));
    least = _mm_add_epi16(least, _mm_set1_epi16(16));
    return (struct grid){_mm256_broadcastsi128_si256(step), _mm256_broadcastsi128_si256(least)};
}

// Word g of the lower half for the first row, of the upper half for the second.
static inline __m256i of_group(__m256i words, unsigned g) {
    const __m256i rows = _mm256_set_m128i(_mm_set1_epi16(0x0908), _mm_set1_epi16(0x0100));
    return _mm256_shuffle_epi8(words, _mm256_add_epi8(rows, _mm256_set1_epi8((char)(2 * g))));
}

static inline __m256i words(__m256i code, __m256i step, __m256i least) {
    return _mm256_srai_epi16(_mm256_add_epi16(_mm256_mulhrs_epi16(code, step), least), 5);
}

static inline vb vb_weights(vb code, const struct grid *grid, unsigned g) {
    const __m256i zero = _mm256_setzero_si256();
    __m256i step = of_group(grid->step, g), least = of_group(grid->least, g);
    __m256i low = words(_mm256_unpacklo_epi8(zero, code), step, least);
    __m256i high = words(_mm256_unpackhi_epi8(zero, code), step, least);
    return _mm256_max_epi8(_mm256_packs_epi16(low, high), _mm256_set1_epi8(-127));
}

static inline vb vb_x(const uint8_t *p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)p));
}
static inline vi vi_zero(void) {
    return _mm256_setzero_si256();
}
static inline void vi_rows(vi v, int32_t rows[LANES]) {
    v = _mm256_hadd_epi32(v, v);
    v = _mm256_hadd_epi32(v, v);
    rows[0] = _mm256_extract_epi32(v, 0);
    rows[1] = _mm256_extract_epi32(v, 4);
}

#endif

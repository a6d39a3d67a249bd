// SPDX-License-Identifier: Apache-2.0
// Four rows at once.
#ifndef ST_KERNELS_NESTED_INT8_512_H
#define ST_KERNELS_NESTED_INT8_512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/nested_int8.h"

enum { LANES = 4 };

typedef __m512i vb;

static inline vb vb_load(const uint8_t *p) {
    return _mm512_loadu_si512(p);
}
static inline vb vb_flip(uint8_t mask, vb v) {
    return _mm512_xor_si512(v, _mm512_set1_epi8((char)mask));
}
static inline vb vb_select(uint8_t mask, vb a, vb b) {
    return _mm512_ternarylogic_epi64(_mm512_set1_epi8((char)mask), a, b, 0xca);
}
#define vb_shl(v, n) _mm512_slli_epi16(v, n)
#define vb_shr(v, n) _mm512_srli_epi16(v, n)
// Words 4 r to 4 r + 3 are those of row r's groups.
struct grid {
    __m256i step, least;
};

// A row's number for each of its four groups.
static inline __m256i of_rows(int16_t r0, int16_t r1, int16_t r2, int16_t r3) {
    return _mm256_set_m128i(_mm_unpacklo_epi64(_mm_set1_epi16(r2), _mm_set1_epi16(r3)),
                            _mm_unpacklo_epi64(_mm_set1_epi16(r0), _mm_set1_epi16(r1)));
}

static inline struct grid grid_of(const uint8_t *scales_at, const uint8_t *minima_at,
                                  const struct st_nested_int8_row *rows, int16_t middle) {
    __m256i scales = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)scales_at));
    __m256i minima = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)minima_at));
    __m256i step =
        _mm256_mulhrs_epi16(_mm256_slli_epi16(scales, 7),
                            of_rows(rows[0].step, rows[1].step, rows[2].step, rows[3].step));
    __m256i least = _mm256_mulhrs_epi16(
        _mm256_slli_epi16(minima, 8),
        of_rows(rows[0].minimum, rows[1].minimum, rows[2].minimum, rows[3].minimum));
    least = _mm256_sub_epi16(least, _mm256_mulhrs_epi16(_mm256_set1_epi16(middle), step));
    least = _mm256_add_epi16(least, _mm256_set1_epi16(16));
    return (struct grid){step, least};
}

// Word 4 r + g to all words of quarter r.
static inline __m512i of_group(__m256i words, unsigned g) {
    const __m512i rows = _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_set_m128i(_mm_set1_epi16(4), _mm_setzero_si128())),
        _mm256_set_m128i(_mm_set1_epi16(12), _mm_set1_epi16(8)), 1);
    return _mm512_permutexvar_epi16(_mm512_add_epi16(rows, _mm512_set1_epi16((short)g)),
                                    _mm512_castsi256_si512(words));
}

static inline __m512i words(__m512i code, __m512i step, __m512i least) {
    return _mm512_srai_epi16(_mm512_add_epi16(_mm512_mulhrs_epi16(code, step), least), 5);
}

static inline vb vb_weights(vb code, const struct grid *grid, unsigned g) {
    const __m512i zero = _mm512_setzero_si512();
    __m512i step = of_group(grid->step, g), least = of_group(grid->least, g);
    __m512i low = words(_mm512_unpacklo_epi8(zero, code), step, least);
    __m512i high = words(_mm512_unpackhi_epi8(zero, code), step, least);
    return _mm512_max_epi8(_mm512_packs_epi16(low, high), _mm512_set1_epi8(-127));
}

#endif

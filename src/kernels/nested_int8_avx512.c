// SPDX-License-Identifier: Apache-2.0
// Four rows at once.
#include "kernels/nested_int8.h"

#include <immintrin.h>

#define NAME st_nested_int8_avx512

enum { LANES = 4 };

typedef __m512i vb;

static inline vb vb_load(const uint8_t *p) {
    return _mm512_loadu_si512(p);
}
static inline void vb_store(uint8_t *p, vb v) {
    _mm512_store_si512(p, v);
}
static inline vb vb_and(vb v, uint8_t mask) {
    return _mm512_and_si512(v, _mm512_set1_epi8((char)mask));
}
static inline vb vb_or(vb a, vb b) {
    return _mm512_or_si512(a, b);
}
#define vb_shl(v, n) _mm512_slli_epi16(v, n)
#define vb_shr(v, n) _mm512_srli_epi16(v, n)

// Words 0 to 3 of quarter r are those of row r's groups.
struct grid {
    __m512i step, least;
};

// Row r's four words to quarter r.
static inline __m512i to_quarters(__m256i words) {
    const __m512i order = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
    return _mm512_permutexvar_epi64(order, _mm512_castsi256_si512(words));
}

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
    return (struct grid){to_quarters(step), to_quarters(least)};
}

// Word g of each quarter.
static inline __m512i of_group(__m512i words, unsigned g) {
    return _mm512_shuffle_epi8(words, _mm512_set1_epi16((short)(0x0100 + 0x0202 * (int)g)));
}

static inline __m512i words(__m512i code, __m512i step, __m512i least) {
    return _mm512_srai_epi16(_mm512_add_epi16(_mm512_mulhrs_epi16(code, step), least), 5);
}

static inline vb vb_weights(vb code, const struct grid *grid, unsigned g) {
    const __m512i zero = _mm512_setzero_si512();
    code = _mm512_xor_si512(code, _mm512_set1_epi8(-128)); // less 128
    __m512i step = of_group(grid->step, g), least = of_group(grid->least, g);
    __m512i low = words(_mm512_unpacklo_epi8(zero, code), step, least);
    __m512i high = words(_mm512_unpackhi_epi8(zero, code), step, least);
    return _mm512_max_epi8(_mm512_packs_epi16(low, high), _mm512_set1_epi8(-127));
}

// Eight rows of 16 bytes become four times eight rows of 4 bytes: those that `first` and `last`
// name, four bytes each, of all rows.
static inline void store_vector(const uint8_t *from, int8_t *to) {
    const __m512i first =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    const __m512i last =
        _mm512_setr_epi32(2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31);
    __m512i upper = _mm512_load_si512(from), lower = _mm512_load_si512(from + 64);
    __m512i v01 = _mm512_permutex2var_epi32(upper, first, lower);
    __m512i v23 = _mm512_permutex2var_epi32(upper, last, lower);
    _mm256_storeu_si256((void *)to, _mm512_castsi512_si256(v01));
    _mm256_storeu_si256((void *)(to + 64), _mm512_extracti64x4_epi64(v01, 1));
    _mm256_storeu_si256((void *)(to + 128), _mm512_castsi512_si256(v23));
    _mm256_storeu_si256((void *)(to + 192), _mm512_extracti64x4_epi64(v23, 1));
}

#include "kernels/nested_int8_body.h"

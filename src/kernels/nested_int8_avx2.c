// SPDX-License-Identifier: Apache-2.0
#include "kernels/nested_int8_256.h"

#define NAME    st_nested_int8_avx2
#define PRODUCT st_nested_int8_product_avx2

static inline void vb_store(uint8_t *p, vb v) {
    _mm256_store_si256((void *)p, v);
}

// Four numbers of each row 0, 2, 4, 6 | 1, 3, 5, 7, in the order of the rows.
static inline void store_rows(__m256i v, int8_t *to) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256((void *)to, _mm256_permutevar8x32_epi32(v, order));
}

// Eight rows of 16 bytes become four times eight rows of 4 bytes.
static inline void store_vector(const uint8_t *from, int8_t *to) {
    const __m256i *rows = (const void *)from;
    __m256i r01 = _mm256_load_si256(rows), r23 = _mm256_load_si256(rows + 1);
    __m256i r45 = _mm256_load_si256(rows + 2), r67 = _mm256_load_si256(rows + 3);
    __m256i low0 = _mm256_unpacklo_epi32(r01, r23), high0 = _mm256_unpackhi_epi32(r01, r23);
    __m256i low1 = _mm256_unpacklo_epi32(r45, r67), high1 = _mm256_unpackhi_epi32(r45, r67);
    store_rows(_mm256_unpacklo_epi64(low0, low1), to);
    store_rows(_mm256_unpackhi_epi64(low0, low1), to + 64);
    store_rows(_mm256_unpacklo_epi64(high0, high1), to + 128);
    store_rows(_mm256_unpackhi_epi64(high0, high1), to + 192);
}

// The input's sign goes to the weight (int8_avx2.c).
static inline vi vi_dot(vi sum, vb w, vb x) {
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(x), _mm256_sign_epi8(w, x));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

#include "kernels/nested_int8_body.h"
#include "kernels/nested_int8_product.h"

// SPDX-License-Identifier: Apache-2.0
#include "kernels/nested_int8_512.h"

#define NAME st_nested_int8_avx512

static inline void vb_store(uint8_t *p, vb v) {
    _mm512_store_si512(p, v);
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

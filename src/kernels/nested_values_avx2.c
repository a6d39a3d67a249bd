// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#define NAME  st_nested_floats_avx2
#define VALUE float

static inline void put(__m128i codes, float step, float least, float *to) {
    const __m256 times = _mm256_set1_ps(step), from = _mm256_set1_ps(least);
    __m256i low = _mm256_cvtepu8_epi32(codes);
    __m256i high = _mm256_cvtepu8_epi32(_mm_srli_si128(codes, 8));
    _mm256_storeu_ps(to, _mm256_fmadd_ps(_mm256_cvtepi32_ps(low), times, from));
    _mm256_storeu_ps(to + 8, _mm256_fmadd_ps(_mm256_cvtepi32_ps(high), times, from));
}

#include "kernels/nested_values_body.h"

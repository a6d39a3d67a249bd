// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>
#include <stdint.h>

#define NAME  st_nested_bf16_avx512bf16
#define VALUE uint16_t

static inline void put(__m128i codes, float step, float least, uint16_t *to) {
    __m512 values = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(codes)),
                                    _mm512_set1_ps(step), _mm512_set1_ps(least));
    _mm256_storeu_si256((void *)to, (__m256i)_mm512_cvtneps_pbh(values));
}

#include "kernels/nested_values_body.h"

// SPDX-License-Identifier: Apache-2.0
// Blocks to BF16, for products that take pairs (kernels/pairs.h).
#include <immintrin.h>
#include <stdint.h>

#define VALUE      uint16_t
#define NAME(type) st_dequantize_bf16_##type##_avx512bf16

static inline __m512 codes_at(const int8_t *q) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)q)));
}

// y[i] = q[i] d + m, n a multiple of 16
static inline __attribute__((always_inline)) void scaled_from(const int8_t *q, int n, float d,
                                                              float m, uint16_t *y) {
    __m512 step = _mm512_set1_ps(d), from = _mm512_set1_ps(m);
    int i = 0;
#pragma GCC unroll 16
    for (; i + 32 <= n; i += 32) {
        __m512 first = _mm512_fmadd_ps(codes_at(q + i), step, from);
        __m512 second = _mm512_fmadd_ps(codes_at(q + i + 16), step, from);
        _mm512_storeu_si512(y + i, (__m512i)_mm512_cvtne2ps_pbh(second, first));
    }
    if (i < n)
        _mm256_storeu_si256((void *)(y + i), (__m256i)_mm512_cvtneps_pbh(
                                                 _mm512_fmadd_ps(codes_at(q + i), step, from)));
}

// y[i] = q[i] d: a zero to add keeps the sign of every value but that of 0.
static inline __attribute__((always_inline)) void scaled(const int8_t *q, int n, float d,
                                                         uint16_t *y) {
    scaled_from(q, n, d, -0.0f, y);
}

#include "kernels/dequantize_body.h"

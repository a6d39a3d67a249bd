// SPDX-License-Identifier: Apache-2.0
#include "kernels/peak_rows.h"

#include <immintrin.h>

#define UNROLL _Pragma("GCC unroll 16")

enum { SUMS = 16 };

typedef __m512i product_fn(__m512i sum, __m512i a, __m512i b);

static inline __attribute__((always_inline)) float add_up(const void *data, size_t rounds,
                                                          product_fn *add_products) {
    __m512i a = _mm512_loadu_si512(data), b = a, sum[SUMS];
    UNROLL for (int i = 0; i < SUMS; i++) sum[i] = _mm512_loadu_si512((const char *)data + i);
    for (size_t r = 0; r < rounds; r++)
        UNROLL for (int i = 0; i < SUMS; i++) sum[i] = add_products(sum[i], a, b);
    UNROLL for (int i = 1; i < SUMS; i++) sum[0] = _mm512_add_epi32(sum[0], sum[i]);
    return (float)_mm512_reduce_add_epi32(sum[0]);
}

static inline __m512i add_int8(__m512i sum, __m512i a, __m512i b) {
    return _mm512_dpbusd_epi32(sum, a, b);
}

static inline __m512i add_int16(__m512i sum, __m512i a, __m512i b) {
    return _mm512_dpwssd_epi32(sum, a, b);
}

float st_peak_int8_avx512vnni(const void *data, size_t rounds) {
    return add_up(data, rounds, add_int8);
}

float st_peak_int16_avx512vnni(const void *data, size_t rounds) {
    return add_up(data, rounds, add_int16);
}

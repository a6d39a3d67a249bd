// SPDX-License-Identifier: Apache-2.0
#include "kernels/peak_rows.h"

#include <immintrin.h>

float st_peak_int8_avx512vnni(const void *data, size_t rounds) {
    enum { SUMS = 16 };
    __m512i a = _mm512_loadu_si512(data), b = a, sum[SUMS];
    _Pragma("GCC unroll 16") for (int i = 0; i < SUMS; i++) sum[i] =
        _mm512_loadu_si512((const char *)data + i);
    for (size_t r = 0; r < rounds; r++)
        _Pragma("GCC unroll 16") for (int i = 0; i < SUMS; i++) sum[i] =
            _mm512_dpbusd_epi32(sum[i], a, b);
    _Pragma("GCC unroll 16") for (int i = 1; i < SUMS; i++) sum[0] =
        _mm512_add_epi32(sum[0], sum[i]);
    return (float)_mm512_reduce_add_epi32(sum[0]);
}

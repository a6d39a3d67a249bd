// SPDX-License-Identifier: Apache-2.0
#include "kernels/peak_rows.h"

#include <immintrin.h>

float st_peak_bf16_avx512bf16(const void *data, size_t rounds) {
    enum { SUMS = 16 };
    __m512bh a = (__m512bh)_mm512_loadu_si512(data), b = a;
    __m512 sum[SUMS];
    _Pragma("GCC unroll 16") for (int i = 0; i < SUMS; i++) sum[i] =
        _mm512_loadu_ps((const float *)data + i);
    for (size_t r = 0; r < rounds; r++)
        _Pragma("GCC unroll 16") for (int i = 0; i < SUMS; i++) sum[i] =
            _mm512_dpbf16_ps(sum[i], a, b);
    _Pragma("GCC unroll 16") for (int i = 1; i < SUMS; i++) sum[0] = _mm512_add_ps(sum[0], sum[i]);
    return _mm512_reduce_add_ps(sum[0]);
}

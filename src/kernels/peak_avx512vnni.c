// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

enum { SUMS = 16 };

typedef __m512i vi;

#define vi_load _mm512_loadu_si512
#define vi_add  _mm512_add_epi32
#define vi_sum  _mm512_reduce_add_epi32

#include "kernels/peak_vnni.h"

INLINE void add_int8(vi *sum, vi a, vi b) {
    *sum = _mm512_dpbusd_epi32(*sum, a, b);
}

INLINE void add_int16(vi *sum, vi a, vi b) {
    *sum = _mm512_dpwssd_epi32(*sum, a, b);
}

float st_peak_int8_avx512vnni(const void *data, size_t rounds) {
    return add_up(data, rounds, add_int8);
}

float st_peak_int16_avx512vnni(const void *data, size_t rounds) {
    return add_up(data, rounds, add_int16);
}

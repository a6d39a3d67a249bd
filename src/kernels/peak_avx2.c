// SPDX-License-Identifier: Apache-2.0
#define PEAK_F32  st_peak_f32_avx2
#define PEAK_READ st_peak_read_avx2
#include "kernels/peak_body.h"

// Bytes to words, then pairs of products summed into 32 bits; what AVX2 has for signed bytes.
float st_peak_int8_avx2(const void *data, size_t rounds) {
    enum { SUMS = 8 };
    __m256i a = _mm256_loadu_si256(data), b = a, sum[SUMS];
    const __m256i ones = _mm256_set1_epi16(1);
    for (int i = 0; i < SUMS; i++) sum[i] = _mm256_loadu_si256(data);
    for (size_t r = 0; r < rounds; r++) _Pragma("GCC unroll 8") for (int i = 0; i < SUMS; i++) {
            __m256i words = _mm256_maddubs_epi16(a, _mm256_xor_si256(b, sum[i]));
            sum[i] = _mm256_add_epi32(sum[i], _mm256_madd_epi16(words, ones));
        }
    for (int i = 1; i < SUMS; i++) sum[0] = _mm256_add_epi32(sum[0], sum[i]);
    return (float)_mm256_extract_epi32(sum[0], 0);
}

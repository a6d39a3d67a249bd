// SPDX-License-Identifier: Apache-2.0
#define PEAK_F32_FEW   st_peak_f32_avx2_10
#define PEAK_F32_MANY  st_peak_f32_avx2_12
#define PEAK_FEW_SUMS  10
#define PEAK_MANY_SUMS 12
#define PEAK_READ      st_peak_read_avx2
#include "kernels/peak_body.h"

#define UNROLL _Pragma("GCC unroll 32")

// The same value, of which the compiler knows nothing: products of it stay in the loop.
static inline __m256i opaque(__m256i x) {
    __asm__ volatile("" : "+x"(x));
    return x;
}

// What AVX2 has for bytes of the full range: the sign of one factor goes to the other, products of
// pairs are summed in 16 bits, then in 32. In place: GCC 12 copies sums otherwise.
float st_peak_int8_avx2(const void *data, size_t rounds) {
    enum { SUMS = 10 };
    __m256i a = _mm256_loadu_si256(data), b = a, sum[SUMS];
    const __m256i ones = _mm256_set1_epi16(1);
    UNROLL for (int i = 0; i < SUMS; i++) sum[i] = a;
    for (size_t r = 0; r < rounds; r++) UNROLL for (int i = 0; i < SUMS; i++) {
            __m256i pairs = _mm256_maddubs_epi16(b, _mm256_sign_epi8(a = opaque(a), b));
            __asm__("vpaddd %1, %0, %0" : "+x"(sum[i]) : "x"(_mm256_madd_epi16(pairs, ones)));
        }
    UNROLL for (int i = 1; i < SUMS; i++) sum[0] = _mm256_add_epi32(sum[0], sum[i]);
    return (float)_mm256_extract_epi32(sum[0], 0);
}

float st_peak_int16_avx2(const void *data, size_t rounds) {
    enum { SUMS = 10 };
    __m256i a = _mm256_loadu_si256(data), b = a, sum[SUMS];
    UNROLL for (int i = 0; i < SUMS; i++) sum[i] = a;
    for (size_t r = 0; r < rounds; r++)
        UNROLL for (int i = 0; i < SUMS; i++) __asm__("vpaddd %1, %0, %0" : "+x"(sum[i]) :
                                                      "x"(_mm256_madd_epi16(a = opaque(a), b)));
    UNROLL for (int i = 1; i < SUMS; i++) sum[0] = _mm256_add_epi32(sum[0], sum[i]);
    return (float)_mm256_extract_epi32(sum[0], 0);
}

// Weights of at most 4 bits leave room for eight products of pairs in 16 bits, which are then
// widened once.
float st_peak_int4_avx2(const void *data, size_t rounds) {
    enum { SUMS = 2, PAIRS = 8 };
    __m256i a = _mm256_loadu_si256(data), b = a, sum[SUMS];
    const __m256i ones = _mm256_set1_epi16(1);
    UNROLL for (int i = 0; i < SUMS; i++) sum[i] = a;
    for (size_t r = 0; r < rounds; r++) UNROLL for (int i = 0; i < SUMS; i++) {
            __m256i words = _mm256_maddubs_epi16(a = opaque(a), b);
            UNROLL for (int p = 1; p < PAIRS; p++) words =
                _mm256_add_epi16(words, _mm256_maddubs_epi16(a = opaque(a), b));
            sum[i] = _mm256_add_epi32(sum[i], _mm256_madd_epi16(words, ones));
        }
    UNROLL for (int i = 1; i < SUMS; i++) sum[0] = _mm256_add_epi32(sum[0], sum[i]);
    return (float)_mm256_extract_epi32(sum[0], 0);
}

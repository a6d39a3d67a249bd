// SPDX-License-Identifier: Apache-2.0
// vpdpbusd multiplies codes without sign.
#include <immintrin.h>
#include <stdbool.h>

#define NAME(type) st_blocks_##type##_avxvnni

enum { SIGNED_CODES = false };

static inline __m256i dot(__m256i code, __m256i high, __m256i low) {
    __m256i of_high = _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), code, high);
    return _mm256_dpbusd_avx_epi32(_mm256_slli_epi32(of_high, 7), code, low);
}
static inline __m256i dot_eight_bits(__m256i code, __m256i high, __m256i low) {
    return dot(code, high, low);
}

#include "kernels/blocks_256.h"

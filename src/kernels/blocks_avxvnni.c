// SPDX-License-Identifier: Apache-2.0
// vpdpbusd multiplies codes without sign.
#include <immintrin.h>
#include <stdbool.h>

#define NAME(type) st_blocks_##type##_avxvnni

enum { SIGNED_CODES = false };

static inline __m256i dot(__m256i code, __m256i x) {
    return _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), code, x);
}
static inline __m256i dot_eight_bits(__m256i code, __m256i x) {
    return dot(code, x);
}

#include "kernels/blocks_256.h"

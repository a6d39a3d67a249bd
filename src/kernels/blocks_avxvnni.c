// SPDX-License-Identifier: Apache-2.0
// vpdpbusd multiplies codes without sign.
#include <immintrin.h>
#include <stdbool.h>

#define NAME(type) st_blocks_##type##_avxvnni

enum { SIGNED_CODES = false, PANEL_COLUMNS = 5, PANELS_OF_8_BITS = true };

static inline __m256i dot(__m256i code, __m256i high, __m256i low) {
    __m256i of_high = _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), code, high);
    return _mm256_dpbusd_avx_epi32(_mm256_slli_epi32(of_high, 7), code, low);
}
static inline __m256i dot_eight_bits(__m256i code, __m256i high, __m256i low) {
    return dot(code, high, low);
}

typedef __m256i lanes;
typedef struct {
    lanes high, low;
} dots;

static inline dots dots_zero(void) {
    return (dots){_mm256_setzero_si256(), _mm256_setzero_si256()};
}
static inline void dots_add(dots *d, lanes w, lanes high, lanes low, int bits) {
    (void)bits;
    d->high = _mm256_dpbusd_avx_epi32(d->high, w, high);
    d->low = _mm256_dpbusd_avx_epi32(d->low, w, low);
}
static inline void dots_widen(dots *d) {
    (void)d;
}
static inline __m256 dots_total(const dots *d) {
    return _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_slli_epi32(d->high, 7), d->low));
}

#include "kernels/blocks_256.h"

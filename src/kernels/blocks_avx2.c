// SPDX-License-Identifier: Apache-2.0
// vpmaddubsw sums two products in 16 bits and saturates. Codes without sign have at most 6 bits:
// 2 * 63 * 127 fits. Codes with 8 bits give their sign to the other factor: 2 * 128 * 127 fits.
// Of codes with 4, 5 or 6 bits, 8, 4 or 2 such sums fit together.
#include <immintrin.h>
#include <stdbool.h>

#define NAME(type) st_blocks_##type##_avx2
#define QUANTIZE   st_blocks_quantize_avx2

enum { SIGNED_CODES = true, PANEL_COLUMNS = 3, PANELS_OF_8_BITS = false };

static inline __m256i dot(__m256i code, __m256i high, __m256i low) {
    __m256i of_high = _mm256_maddubs_epi16(code, high), of_low = _mm256_maddubs_epi16(code, low);
    return _mm256_add_epi32(_mm256_madd_epi16(of_high, _mm256_set1_epi16(128)),
                            _mm256_madd_epi16(of_low, _mm256_set1_epi16(1)));
}
static inline __m256i dot_eight_bits(__m256i code, __m256i high, __m256i low) {
    return dot(_mm256_abs_epi8(code), _mm256_sign_epi8(high, code), _mm256_sign_epi8(low, code));
}

typedef __m256i lanes;
typedef struct {
    lanes high, low; // in 16 bits
    lanes exact;
} dots;

static inline dots dots_zero(void) {
    return (dots){_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
}
// In place: GCC 12 copies sums otherwise, and spills them.
static inline void add_16(lanes *sum, lanes x) {
    __asm__("vpaddw %1, %0, %0" : "+x"(*sum) : "x"(x));
}
static inline void dots_add(dots *d, lanes w, lanes high, lanes low, int bits) {
    lanes positive = bits == 8 ? _mm256_abs_epi8(w) : w;
    if (bits == 8) high = _mm256_sign_epi8(high, w), low = _mm256_sign_epi8(low, w);
    add_16(&d->high, _mm256_maddubs_epi16(positive, high));
    add_16(&d->low, _mm256_maddubs_epi16(positive, low));
}
static inline void dots_widen(dots *d) {
    lanes high = _mm256_madd_epi16(d->high, _mm256_set1_epi16(128));
    lanes low = _mm256_madd_epi16(d->low, _mm256_set1_epi16(1));
    d->exact = _mm256_add_epi32(d->exact, _mm256_add_epi32(high, low));
    d->high = d->low = _mm256_setzero_si256();
}
static inline __m256 dots_total(const dots *d) {
    return _mm256_cvtepi32_ps(d->exact);
}

#include "kernels/blocks_256.h"
#include "kernels/blocks_quantize.h"

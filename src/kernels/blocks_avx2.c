// SPDX-License-Identifier: Apache-2.0
// vpmaddubsw sums two products in 16 bits and saturates. Codes without sign have at most 6 bits:
// 2 * 63 * 127 fits. Codes with 8 bits give their sign to the other factor: 2 * 128 * 127 fits.
#include <immintrin.h>
#include <stdbool.h>

#define NAME(type) st_blocks_##type##_avx2
#define QUANTIZE   st_blocks_quantize_avx2

enum { SIGNED_CODES = true };

static inline __m256i dot(__m256i code, __m256i high, __m256i low) {
    __m256i of_high = _mm256_maddubs_epi16(code, high), of_low = _mm256_maddubs_epi16(code, low);
    return _mm256_add_epi32(_mm256_madd_epi16(of_high, _mm256_set1_epi16(128)),
                            _mm256_madd_epi16(of_low, _mm256_set1_epi16(1)));
}
static inline __m256i dot_eight_bits(__m256i code, __m256i high, __m256i low) {
    return dot(_mm256_abs_epi8(code), _mm256_sign_epi8(high, code), _mm256_sign_epi8(low, code));
}

#include "kernels/blocks_256.h"
#include "kernels/blocks_quantize.h"

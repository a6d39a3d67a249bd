// SPDX-License-Identifier: Apache-2.0
// vpmaddubsw sums two products in 16 bits and saturates. Codes without sign have at most 6 bits:
// 2 * 63 * 127 fits. Codes with 8 bits give their sign to the other factor: 2 * 128 * 127 fits.
#include <immintrin.h>
#include <stdbool.h>

#define NAME(type) st_blocks_##type##_avx2
#define QUANTIZE   st_blocks_quantize_avx2

enum { SIGNED_CODES = true };

static inline __m256i dot(__m256i code, __m256i x) {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(code, x), _mm256_set1_epi16(1));
}
static inline __m256i dot_eight_bits(__m256i code, __m256i x) {
    return dot(_mm256_abs_epi8(code), _mm256_sign_epi8(x, code));
}

#include "kernels/blocks_256.h"
#include "kernels/blocks_quantize.h"

// SPDX-License-Identifier: Apache-2.0
// Codes of at most 6 bits: the products of a group fit 16 bits.
#include "kernels/nested_256.h"

#define NAME     st_nested_avx2
#define QUANTIZE st_nested_quantize_avx2
#define REST     st_nested_rest_avx2

static inline vi vi_add(vi sum, unsigned bits, vs scales, unsigned g, vb v0, vb x0, vb v1, vb x1) {
    __m256i first = _mm256_maddubs_epi16(v0, x0), second = _mm256_maddubs_epi16(v1, x1);
    vi scale = vs_group(scales, g);
    if (bits <= 6)
        return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_add_epi16(first, second), scale));
    return _mm256_add_epi32(_mm256_add_epi32(sum, _mm256_madd_epi16(first, scale)),
                            _mm256_madd_epi16(second, scale));
}

#include "kernels/nested_body.h"
#include "kernels/nested_quantize.h"

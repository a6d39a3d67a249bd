// SPDX-License-Identifier: Apache-2.0
// Codes of at most 6 bits: four products of a group fit 16 bits, so that one vpdpwssd scales and
// adds them; of at most 5 bits: eight, so that it does for two groups.
#include "kernels/nested_256.h"

#define NAME st_nested_avxvnni

static inline vi vi_add(vi sum, unsigned bits, vs scales, unsigned g, vb v0, vb x0, vb v1, vb x1) {
    __m256i first = _mm256_maddubs_epi16(v0, x0), second = _mm256_maddubs_epi16(v1, x1);
    vi scale = vs_group(scales, g);
    if (bits <= 6) return _mm256_dpwssd_avx_epi32(sum, _mm256_add_epi16(first, second), scale);
    return _mm256_dpwssd_avx_epi32(_mm256_dpwssd_avx_epi32(sum, first, scale), second, scale);
}

#include "kernels/nested_codes.h"

#define TWO_GROUPS 5
// Bytes g and g + 1 behind 0 and 4, each as four 16-bit numbers.
INLINE vi vs_two_groups(vs scales, unsigned g) {
    const short first = (short)0xff00, second = (short)0xff01;
    const __m128i row = _mm_setr_epi16(first, first, first, first, second, second, second, second);
    const __m256i rows = _mm256_set_m128i(_mm_add_epi16(row, _mm_set1_epi16(4)), row);
    return _mm256_shuffle_epi8(scales, _mm256_add_epi16(rows, _mm256_set1_epi16((short)g)));
}
INLINE vi eight_products(vb v0, vb x0, vb v1, vb x1) {
    return _mm256_dpbusd_avx_epi32(_mm256_dpbusd_avx_epi32(vi_zero(), v0, x0), v1, x1);
}
INLINE vi vi_add_two(vi sum, vs scales, unsigned g, const struct four *v, const vb x[4]) {
    vi first = eight_products(v->f0, x[0], v->f1, x[1]);
    vi second = eight_products(v->f2, x[2], v->f3, x[3]);
    return _mm256_dpwssd_avx_epi32(sum, _mm256_packs_epi32(first, second),
                                   vs_two_groups(scales, g));
}

#include "kernels/nested_body.h"

// SPDX-License-Identifier: Apache-2.0
// vpdpbusd multiplies codes without sign.
#include <stdbool.h>

#include "kernels/blocks.h"
#include "kernels/blocks_x86.h"

#define NAME(type) st_blocks_##type##_avxvnni

enum { SIGNED_CODES = false, PANEL_COLUMNS = 5 };

INLINE __m256i exact_part(__m256i code, const struct st_blocks_chunk *x, size_t part, int bits) {
    (void)bits;
    __m256i high = load_256(x->high + 32 * part), low = load_256(x->low + 32 * part);
    __m256i of_high = _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), code, high);
    return _mm256_dpbusd_avx_epi32(_mm256_slli_epi32(of_high, 7), code, low);
}

typedef __m256i lanes;
typedef struct {
    lanes high, low;
} dots;

INLINE dots dots_zero(void) {
    return (dots){_mm256_setzero_si256(), _mm256_setzero_si256()};
}
INLINE void dots_add_bytes(dots *d, lanes w, lanes high, lanes low) {
    d->high = _mm256_dpbusd_avx_epi32(d->high, w, high);
    d->low = _mm256_dpbusd_avx_epi32(d->low, w, low);
}
INLINE void dots_add(dots *d, lanes w, const struct st_blocks_chunk *x, size_t first, size_t i,
                     int bits) {
    size_t group = first + i;
    (void)bits;
    dots_add_bytes(d, w, eight_of(x->high + 4 * group), eight_of(x->low + 4 * group));
}
INLINE __m256i dots_exact(const dots *d) {
    return _mm256_add_epi32(_mm256_slli_epi32(d->high, 7), d->low);
}
INLINE __m256 dots_total(const dots *d, int bits) {
    (void)bits;
    return _mm256_cvtepi32_ps(dots_exact(d));
}

#include "kernels/blocks_256.h"

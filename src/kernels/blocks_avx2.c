// SPDX-License-Identifier: Apache-2.0
// vpmaddubsw sums two products in 16 bits and saturates. Codes without sign have at most 6 bits:
// 2 * 63 * 127 fits, and of codes with 4 bits 8 such sums fit together. Codes with a sign are
// widened to 16 bits for vpmaddwd, which takes an input with its 15 bits at once; so are those of
// panels with more than 4 bits, as a panel is widened once for all columns.
#include <stdbool.h>

#include "kernels/blocks.h"
#include "kernels/blocks_x86.h"

#define NAME(type) st_blocks_##type##_avx2
#define QUANTIZE   st_blocks_quantize_avx2

enum { SIGNED_CODES = true, PANEL_COLUMNS = 5 };

INLINE __m256i even_words(__m256i v) {
    return _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8);
}
INLINE __m256i odd_words(__m256i v) {
    return _mm256_srai_epi16(v, 8);
}
// Of sums of products with an input's halves, in 16 bits.
INLINE __m256i widen(__m256i high, __m256i low) {
    return _mm256_add_epi32(_mm256_madd_epi16(high, _mm256_set1_epi16(128)),
                            _mm256_madd_epi16(low, _mm256_set1_epi16(1)));
}
INLINE __m256i exact_part(__m256i code, const struct st_blocks_chunk *x, size_t part, int bits) {
    const int16_t *q = x->q + 32 * part;
    if (bits == 8)
        return _mm256_add_epi32(_mm256_madd_epi16(even_words(code), load_256(q)),
                                _mm256_madd_epi16(odd_words(code), load_256(q + 16)));
    return widen(_mm256_maddubs_epi16(code, load_256(x->high + 32 * part)),
                 _mm256_maddubs_epi16(code, load_256(x->low + 32 * part)));
}

// Of codes with 4 bits: sums in 16 bits of products with the halves. Of others: exact sums with
// even and with odd elements.
typedef __m256i lanes;
typedef struct {
    lanes of[2];
} dots;

INLINE dots dots_zero(void) {
    return (dots){{_mm256_setzero_si256(), _mm256_setzero_si256()}};
}
INLINE void dots_add(dots *d, lanes w, const struct st_blocks_chunk *x, size_t first, size_t i,
                     int bits) {
    size_t group = first + i;
    // In place: GCC 12 copies sums otherwise, and spills them.
    if (bits == 4) {
        lanes high = _mm256_maddubs_epi16(w, eight_of(x->high + 4 * group));
        lanes low = _mm256_maddubs_epi16(w, eight_of(x->low + 4 * group));
        __asm__("vpaddw %1, %0, %0" : "+x"(d->of[0]) : "x"(high));
        __asm__("vpaddw %1, %0, %0" : "+x"(d->of[1]) : "x"(low));
        return;
    }
    const int16_t *q = x->q + group / 8 * 32 + group % 8 * 2;
    lanes even = _mm256_madd_epi16(even_words(w), eight_of(q));
    lanes odd = _mm256_madd_epi16(odd_words(w), eight_of(q + 16));
    __asm__("vpaddd %1, %0, %0" : "+x"(d->of[0]) : "x"(even));
    __asm__("vpaddd %1, %0, %0" : "+x"(d->of[1]) : "x"(odd));
}
INLINE void dots_add_bytes(dots *d, __m256i w, __m256i high, __m256i low) {
    d->of[0] = _mm256_add_epi16(d->of[0], _mm256_maddubs_epi16(w, high));
    d->of[1] = _mm256_add_epi16(d->of[1], _mm256_maddubs_epi16(w, low));
}
INLINE __m256i dots_exact(const dots *d) {
    return widen(d->of[0], d->of[1]);
}
INLINE __m256 dots_total(const dots *d, int bits) {
    return _mm256_cvtepi32_ps(bits == 4 ? dots_exact(d) : _mm256_add_epi32(d->of[0], d->of[1]));
}

#include "kernels/blocks_256.h"

void st_blocks_arrange_avx2(struct st_blocks_chunk *x) {
    arrange_halves(x->high, x->by_blocks[0], x->by_pairs[0]);
    arrange_halves(x->low, x->by_blocks[1], x->by_pairs[1]);
}

#include "kernels/blocks_quantize.h"

// SPDX-License-Identifier: Apache-2.0
// vpmaddubsw sums two products in 16 bits and saturates. Codes without sign have at most 6 bits:
// 2 * 63 * 127 fits, and of codes with 4 bits 8 such sums fit together. Codes with a sign are
// widened to 16 bits for vpmaddwd, which takes an input with its 15 bits at once; so are those of
// panels with more than 4 bits, as a panel is widened once for all columns.
#include <stdbool.h>

#include "kernels/blocks.h"
#include "kernels/blocks_x86.h"
#include "kernels/int16_codes.h"
#include "kernels/int16_rows.h"
#include "kernels/quantize_float.h"
#include "kernels/vec_words.h"

#define NAME(type) st_blocks_##type##_avx2

enum { SIGNED_CODES = true, PANEL_COLUMNS = 5 };

// Of sums of products with an input's halves, in 16 bits.
INLINE __m256i widen(__m256i high, __m256i low) {
    return _mm256_add_epi32(_mm256_madd_epi16(high, _mm256_set1_epi16(128)),
                            _mm256_madd_epi16(low, _mm256_set1_epi16(1)));
}
INLINE __m256i exact_part(__m256i code, const struct st_blocks_chunk *x, size_t part, int bits) {
    const int16_t *q = x->q + 32 * part;
    if (bits == 8)
        return _mm256_add_epi32(_mm256_madd_epi16(vi_even_bytes(code), load_256(q)),
                                _mm256_madd_epi16(vi_odd_bytes(code), load_256(q + 16)));
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
    lanes even = _mm256_madd_epi16(vi_even_bytes(w), eight_of(q));
    lanes odd = _mm256_madd_epi16(vi_odd_bytes(w), eight_of(q + 16));
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

// ---- Inputs: st_blocks_quantize_plain() in vectors; compilers make scalar loops of some of it

INLINE float largest(__m256i bits) {
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(vi_largest(bits))));
}
// The lower 16 bits of st_round_to_int().
INLINE __m256i rounded(__m256 v) {
    __m256 sum = _mm256_add_ps(v, _mm256_set1_ps(0x1.8p23f));
    return _mm256_and_si256(_mm256_castps_si256(sum), _mm256_set1_epi32(0xffff));
}
// The lower halves of the elements of a, then of b; the others are 0.
INLINE __m256i narrow_32(__m256i a, __m256i b) {
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
}
INLINE __m256i narrow_16(__m256i a, __m256i b) {
    const __m256i low = _mm256_set1_epi16(0xff);
    a = _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
    return _mm256_permute4x64_epi64(a, 0xd8);
}
INLINE void store_256(void *p, __m256i v) {
    _mm256_storeu_si256(p, v);
}

void st_blocks_quantize_avx2(const float *restrict x, int8_t *restrict high, int8_t *restrict low,
                             int16_t *restrict words, float *restrict scale, float *restrict sum,
                             float *restrict half_sum) {
    enum { EIGHTS = ST_BLOCKS_PART / 8 };
    __m256 v[EIGHTS];
    __m256i bits = _mm256_setzero_si256(), q[EIGHTS / 2], upper[EIGHTS / 2], lower[EIGHTS / 2];
    UNROLLED for (int i = 0; i < EIGHTS; i++) {
        v[i] = _mm256_loadu_ps(x + 8 * i);
        bits = _mm256_max_epi32(bits, vi_magnitude_bits(v[i]));
    }
    float max = largest(bits);
    const __m256 inverse = _mm256_set1_ps(st_quantize_factor(max, (float)ST_BLOCKS_MAX_Q));
    UNROLLED for (int i = 0; i < EIGHTS / 2; i++) {
        q[i] = narrow_32(rounded(_mm256_mul_ps(v[2 * i], inverse)),
                         rounded(_mm256_mul_ps(v[2 * i + 1], inverse)));
        upper[i] = _mm256_srai_epi16(_mm256_add_epi16(q[i], _mm256_set1_epi16(64)), 7);
        lower[i] = _mm256_sub_epi16(q[i], _mm256_slli_epi16(upper[i], 7));
    }
    store_256(high, narrow_16(upper[0], upper[1]));
    store_256(low, narrow_16(lower[0], lower[1]));
    const __m256i even = _mm256_set1_epi32(0xffff), ones = _mm256_set1_epi16(1);
    store_256(words, narrow_32(_mm256_and_si256(q[0], even), _mm256_and_si256(q[1], even)));
    store_256(words + 16, narrow_32(_mm256_srli_epi32(q[0], 16), _mm256_srli_epi32(q[1], 16)));
    __m256i pairs = _mm256_hadd_epi32(_mm256_madd_epi16(q[0], ones), _mm256_madd_epi16(q[1], ones));
    __m128i fours =
        _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    __m128i both = _mm_hadd_epi32(fours, fours);
    int32_t first = _mm_cvtsi128_si32(both), second = _mm_extract_epi32(both, 1);
    *scale = max / (float)ST_BLOCKS_MAX_Q;
    half_sum[0] = *scale * (float)first;
    half_sum[1] = *scale * (float)second;
    *sum = *scale * (float)(first + second);
}

#include "kernels/blocks_int16.h"

// SPDX-License-Identifier: Apache-2.0
// Products with blocks in 256-bit registers, one part in each. The including file has the product
// of 32 codes with an input's two halves as 8 sums of 4: dot(), and dot_eight_bits() for types
// whose codes have 8 bits.
#include <stdbool.h>

#include "kernels/blocks.h"
#include "kernels/blocks_x86.h"

typedef struct {
    __m256i of[2];
} codes;
typedef struct {
    __m256 of[2];
} wide, sums;

// ---- Codes

INLINE __m256i load(const unsigned char *p) {
    return _mm256_loadu_si256((const void *)p);
}
INLINE __m256i keep(__m256i v, char mask) {
    return _mm256_and_si256(v, _mm256_set1_epi8(mask));
}
// To the right, or for n below 0 to the left; bits that come from other bytes must not be kept.
INLINE __m256i shift(__m256i v, int n) {
    return n >= 0 ? _mm256_srli_epi16(v, n) : _mm256_slli_epi16(v, -n);
}
INLINE codes codes_load(const unsigned char *first, const unsigned char *second) {
    return (codes){{load(first), load(second)}};
}
INLINE __m256i nibbles(const unsigned char *p) {
    __m128i v = _mm_loadu_si128((const void *)p);
    return keep(_mm256_inserti128_si256(_mm256_castsi128_si256(v), _mm_srli_epi16(v, 4), 1), 15);
}
INLINE codes codes_nibbles(const unsigned char *first, const unsigned char *second) {
    return (codes){{nibbles(first), nibbles(second)}};
}
INLINE codes codes_low_high(const unsigned char *p) {
    __m256i v = load(p);
    return (codes){{keep(v, 15), keep(shift(v, 4), 15)}};
}
INLINE codes codes_two_bits(const unsigned char *p, int i) {
    __m256i v = load(p);
    return (codes){{keep(shift(v, 4 * i), 3), keep(shift(v, 4 * i + 2), 3)}};
}
INLINE codes codes_six_bits(const unsigned char *low, const unsigned char *high, int i) {
    codes v;
    UNROLLED for (int j = 0; j < 2; j++) {
        __m256i four = keep(shift(load(low + 32 * j), 4 * i), 15);
        v.of[j] = _mm256_or_si256(four, keep(shift(load(high), 4 * i + 2 * j - 4), 0x30));
    }
    return v;
}
INLINE codes codes_or_bits(codes v, const unsigned char *p, int bit, char value) {
    int to = value == 16 ? 4 : 2;
    UNROLLED for (int j = 0; j < 2; j++) v.of[j] =
        _mm256_or_si256(v.of[j], keep(shift(load(p), bit + j - to), value));
    return v;
}
// 16 in each of 32 bytes whose bit is set.
INLINE __m256i sixteens(uint32_t bits) {
    const __m256i bytes =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201u);
    __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), bytes);
    return keep(_mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit), 16);
}
INLINE codes codes_add_16(codes v, const unsigned char *first, const unsigned char *second) {
    v.of[0] = _mm256_or_si256(v.of[0], sixteens(u32_at(first)));
    v.of[1] = _mm256_or_si256(v.of[1], sixteens(u32_at(second)));
    return v;
}
INLINE codes codes_of_signed(codes v) {
    const __m256i sign = _mm256_set1_epi8((char)0x80);
    if (SIGNED_CODES) return v;
    return (codes){{_mm256_xor_si256(v.of[0], sign), _mm256_xor_si256(v.of[1], sign)}};
}
INLINE codes codes_lookup(const uint8_t table[16], codes v) {
    __m256i values = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)table));
    return (codes){{_mm256_shuffle_epi8(values, v.of[0]), _mm256_shuffle_epi8(values, v.of[1])}};
}

// ---- Sixteen floats

INLINE __m256 floats_of(__m256i v) {
    return _mm256_cvtepi32_ps(v);
}
INLINE wide wide_of_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    __m128i low = _mm_insert_epi32(_mm_cvtsi32_si128((int)a), (int)b, 1);
    __m128i high = _mm_insert_epi32(_mm_cvtsi32_si128((int)c), (int)d, 1);
    return (wide){{floats_of(_mm256_cvtepu8_epi32(low)), floats_of(_mm256_cvtepu8_epi32(high))}};
}
INLINE wide wide_of_signed(const unsigned char *p) {
    __m128i low = _mm_loadl_epi64((const void *)p), high = _mm_loadl_epi64((const void *)(p + 8));
    return (wide){{floats_of(_mm256_cvtepi8_epi32(low)), floats_of(_mm256_cvtepi8_epi32(high))}};
}
INLINE wide wide_times(wide v, float low, float high) {
    return (wide){{halves_times(v.of[0], low), halves_times(v.of[1], high)}};
}
INLINE wide wide_less(wide v, float x) {
    const __m256 less = _mm256_set1_ps(x);
    return (wide){{_mm256_sub_ps(v.of[0], less), _mm256_sub_ps(v.of[1], less)}};
}
INLINE void wide_split(wide v, halves *low, halves *high) {
    *low = v.of[0];
    *high = v.of[1];
}

// ---- Products

INLINE sums sums_zero(void) {
    return (sums){{_mm256_setzero_ps(), _mm256_setzero_ps()}};
}
INLINE float sums_total(const sums *sum) {
    __m256 v = _mm256_add_ps(sum->of[0], sum->of[1]);
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
INLINE __m256i load_signed(const int8_t *p) {
    return _mm256_loadu_si256((const void *)p);
}
INLINE void sums_add_32(sums *sum, const codes *code, halves scale, halves minimum, size_t n_pairs,
                        const struct st_blocks_chunk *x, bool eight_bits, bool minima) {
    float scales[8];
    _mm256_storeu_ps(scales, _mm256_mul_ps(scale, _mm256_loadu_ps(x->scale)));
    UNROLLED for (size_t i = 0; i < n_pairs; i++) UNROLLED for (size_t j = 0; j < 2; j++) {
        __m256i high = load_signed(x->high + 64 * i + 32 * j);
        __m256i low = load_signed(x->low + 64 * i + 32 * j);
        __m256i exact =
            eight_bits ? dot_eight_bits(code[i].of[j], high, low) : dot(code[i].of[j], high, low);
        sum->of[j] =
            _mm256_fmadd_ps(floats_of(exact), _mm256_set1_ps(scales[2 * i + j]), sum->of[j]);
    }
    if (minima) sum->of[0] = _mm256_fnmadd_ps(minimum, _mm256_loadu_ps(x->sum), sum->of[0]);
}
INLINE void sums_add_16(sums *sum, const codes *code, wide scale, wide minimum, size_t n_pairs,
                        const struct st_blocks_chunk *x) {
    float scales[16];
    __m256 of_x = _mm256_loadu_ps(x->scale);
    __m256 low = _mm256_permutevar8x32_ps(of_x, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
    __m256 high = _mm256_permutevar8x32_ps(of_x, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7));
    _mm256_storeu_ps(scales, _mm256_mul_ps(scale.of[0], low));
    _mm256_storeu_ps(scales + 8, _mm256_mul_ps(scale.of[1], high));
    UNROLLED for (size_t i = 0; i < n_pairs; i++) UNROLLED for (size_t j = 0; j < 2; j++) {
        __m256i exact = dot(code[i].of[j], load_signed(x->high + 64 * i + 32 * j),
                            load_signed(x->low + 64 * i + 32 * j));
        __m256 two = _mm256_blend_ps(_mm256_set1_ps(scales[4 * i + 2 * j]),
                                     _mm256_set1_ps(scales[4 * i + 2 * j + 1]), 0xf0);
        sum->of[j] = _mm256_fmadd_ps(floats_of(exact), two, sum->of[j]);
    }
    for (size_t j = 0; j < 2; j++)
        sum->of[j] =
            _mm256_fnmadd_ps(minimum.of[j], _mm256_loadu_ps(x->half_sum + 8 * j), sum->of[j]);
}

#include "kernels/blocks_body.h"

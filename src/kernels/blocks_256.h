// SPDX-License-Identifier: Apache-2.0
// Products with blocks in 256-bit registers, one part in each. The including file has the product
// of 32 codes with a part of an input as 8 sums of 4, exact_part(), and dots for panels of 8 rows
// (blocks_panels.h).
#include <stdbool.h>

#include "kernels/blocks.h"
#include "kernels/blocks_x86.h"
#include "kernels/vec_words.h"

typedef struct {
    __m256i of[2];
} codes;
typedef struct {
    __m256 of[2];
} wide, sums; // of parts of 32: the first half
typedef __m256 floats;

enum { LANES = 8, TOGETHER = 4 };

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
INLINE __m256i looked_up(const uint8_t table[16], __m256i v) {
    __m128i values = _mm_loadu_si128((const void *)table);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), v);
}
INLINE codes codes_lookup(const uint8_t table[16], codes v) {
    return (codes){{looked_up(table, v.of[0]), looked_up(table, v.of[1])}};
}
// Each byte of v times its factor, modulo 256, times 3, over 256.
INLINE codes codes_digits(codes v, const uint8_t factor[64]) {
    const __m256i low = _mm256_set1_epi16(0xff), three = _mm256_set1_epi16(3);
    UNROLLED for (size_t j = 0; j < 2; j++) {
        __m256i by = load(factor + 32 * j);
        __m256i even = _mm256_and_si256(_mm256_mullo_epi16(v.of[j], by), low);
        __m256i odd = _mm256_and_si256(
            _mm256_mullo_epi16(_mm256_srli_epi16(v.of[j], 8), _mm256_srli_epi16(by, 8)), low);
        even = _mm256_srli_epi16(_mm256_mullo_epi16(even, three), 8);
        odd = _mm256_andnot_si256(low, _mm256_mullo_epi16(odd, three));
        v.of[j] = _mm256_or_si256(even, odd);
    }
    return v;
}

INLINE halves halves_at(const unsigned char *p, size_t stride, size_t n) {
    return halves_one_by_one(p, stride, n);
}
INLINE void halves_pairs_at(const unsigned char *p, size_t stride, size_t n, halves *first,
                            halves *second) {
    halves_pairs_one_by_one(p, stride, n, first, second);
}

#include "kernels/blocks_arranged.h"

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
#define WIDE_OF_K
INLINE wide wide_of_k(const unsigned char *b) {
    const __m128i low_bits = _mm_setr_epi32(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f);
    const __m128i high_bits = _mm_setr_epi32(0, 0x30303030, 0, 0x30303030);
    __m128i v = _mm_loadu_si128((const void *)b);
    __m128i low = _mm_srlv_epi32(_mm_shuffle_epi32(v, 0xed), _mm_setr_epi32(0, 0, 0, 4));
    __m128i high = _mm_srlv_epi32(_mm_shuffle_epi32(v, 0xa5), _mm_setr_epi32(0, 2, 0, 2));
    __m128i six = _mm_or_si128(_mm_and_si128(low, low_bits), _mm_and_si128(high, high_bits));
    __m128 by = _mm_cvtph_ps(v);
    return (wide){{_mm256_mul_ps(floats_of(_mm256_cvtepu8_epi32(six)), _mm256_broadcastss_ps(by)),
                   _mm256_mul_ps(floats_of(_mm256_cvtepu8_epi32(_mm_srli_si128(six, 8))),
                                 _mm256_broadcastss_ps(_mm_movehdup_ps(by)))}};
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
INLINE halves sums_of_parts(const sums *sum) {
    return sum->of[0];
}
INLINE void sums_set_parts(sums *sum, halves v) {
    sum->of[0] = v;
}
INLINE float sums_total(const sums *sum, bool by_16) {
    return halves_total(by_16 ? _mm256_add_ps(sum->of[0], sum->of[1]) : sum->of[0]);
}
INLINE __m256i add_neighbours_32(__m256i a, __m256i b) {
    return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}
INLINE __m256i add_neighbours_64(__m256i a, __m256i b) {
    return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}
// Sums of 16 elements each, of pairs i and i + 1: half-part 4 i + 2 j + l is lane j + 4 l.
INLINE __m256i eight_sums(const codes *code, size_t i, size_t n_pairs,
                          const struct st_blocks_chunk *x, int bits) {
    __m256i exact[4];
    if (i >= n_pairs) return _mm256_setzero_si256();
    UNROLLED for (size_t j = 0; j < 4; j++) exact[j] =
        i + j / 2 < n_pairs ? exact_part(code[i + j / 2].of[j % 2], x, 2 * i + j, bits)
                            : _mm256_setzero_si256();
    return add_neighbours_64(add_neighbours_32(exact[0], exact[1]),
                             add_neighbours_32(exact[2], exact[3]));
}
typedef __m256i part_sums; // exact, of 8 parts
INLINE void sums_add_parts(sums *sum, part_sums parts, halves scale, halves minimum,
                           const struct st_blocks_chunk *x, bool minima) {
    sum->of[0] = halves_add_parts(sum->of[0], parts, scale, minimum, _mm256_loadu_ps(x->scale),
                                  _mm256_loadu_ps(x->sum), minima);
}
INLINE void sums_add_32(sums *sum, const codes *code, halves scale, halves minimum, size_t n_pairs,
                        const struct st_blocks_chunk *x, int bits, bool minima) {
    __m256i a = eight_sums(code, 0, n_pairs, x, bits), b = eight_sums(code, 2, n_pairs, x, bits);
    __m256i parts = _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                                     _mm256_permute2x128_si256(a, b, 0x31));
    sums_add_parts(sum, parts, scale, minimum, x, minima);
}
INLINE part_sums arranged_sums(const arranged *v, const struct st_blocks_chunk *x, int bits,
                               bool by_pairs) {
    return by_pairs ? arranged_by_pairs(v, x) : arranged_by_blocks(v, x, bits);
}
INLINE void sums_add_16(sums *sum, const codes *code, wide scale, wide minimum, size_t n_pairs,
                        const struct st_blocks_chunk *x, int bits) {
    const __m256i at = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i both = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    UNROLLED for (size_t j = 0; j < 2; j++) {
        __m256i exact = _mm256_permutevar8x32_epi32(eight_sums(code, 2 * j, n_pairs, x, bits), at);
        __m256 of_x =
            _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(x->scale + 4 * j)), both);
        __m256 scales = _mm256_mul_ps(scale.of[j], of_x);
        sum->of[j] = _mm256_fmadd_ps(floats_of(exact), scales, sum->of[j]);
        sum->of[j] =
            _mm256_fnmadd_ps(minimum.of[j], _mm256_loadu_ps(x->half_sum + 8 * j), sum->of[j]);
    }
}

// ---- Panels

INLINE void codes_store(unsigned char *p, codes v) {
    UNROLLED for (size_t j = 0; j < 2; j++) _mm256_storeu_si256((void *)(p + 32 * j), v.of[j]);
}
INLINE void wide_store(float *p, wide v) {
    UNROLLED for (size_t j = 0; j < 2; j++) _mm256_storeu_ps(p + 8 * j, v.of[j]);
}
INLINE lanes lanes_load(const void *p) {
    return _mm256_loadu_si256(p);
}
INLINE floats floats_load(const float *p) {
    return _mm256_loadu_ps(p);
}
INLINE void floats_store(float *p, floats v) {
    _mm256_storeu_ps(p, v);
}
INLINE floats floats_set1(float x) {
    return _mm256_set1_ps(x);
}
INLINE floats floats_add(floats a, floats b) {
    return _mm256_add_ps(a, b);
}
INLINE floats floats_mul(floats a, floats b) {
    return _mm256_mul_ps(a, b);
}
INLINE floats floats_fma(floats a, floats b, floats c) {
    return _mm256_fmadd_ps(a, b, c);
}
INLINE floats floats_fnma(floats a, floats b, floats c) {
    return _mm256_fnmadd_ps(a, b, c);
}
INLINE void transpose(const unsigned char *from, size_t row_bytes, unsigned char *to) {
    __m256i t[8], u[8];
    UNROLLED for (size_t i = 0; i < 8; i += 2) {
        __m256i even = load(from + i * row_bytes), odd = load(from + (i + 1) * row_bytes);
        t[i] = _mm256_unpacklo_epi32(even, odd);
        t[i + 1] = _mm256_unpackhi_epi32(even, odd);
    }
    UNROLLED for (size_t i = 0; i < 8; i += 4) UNROLLED for (size_t j = 0; j < 2; j++) {
        u[i + 2 * j] = _mm256_unpacklo_epi64(t[i + j], t[i + 2 + j]);
        u[i + 2 * j + 1] = _mm256_unpackhi_epi64(t[i + j], t[i + 2 + j]);
    }
    UNROLLED for (size_t j = 0; j < 4; j++) {
        _mm256_storeu_si256((void *)(to + j * 32), _mm256_permute2x128_si256(u[j], u[4 + j], 0x20));
        _mm256_storeu_si256((void *)(to + (4 + j) * 32),
                            _mm256_permute2x128_si256(u[j], u[4 + j], 0x31));
    }
}

#define PACKED
INLINE void lanes_store(void *p, lanes v) {
    _mm256_storeu_si256(p, v);
}
INLINE lanes lanes_low(lanes v) {
    return keep(v, 15);
}
INLINE lanes lanes_high(lanes v) {
    return keep(shift(v, 4), 15);
}
INLINE lanes lanes_lookup(const uint8_t table[16], lanes v) {
    return looked_up(table, v);
}
// 16 more in byte i where bit 4 group + i of the lane of `bits` is set.
INLINE lanes lanes_add_fifths(lanes v, lanes bits, size_t group) {
    return _mm256_or_si256(v, fifths_of(bits, group));
}
// Of the two halves in each lane.
INLINE floats lanes_second_halves(lanes v) {
    v = _mm256_srli_epi32(v, 16);
    v = _mm256_permute4x64_epi64(_mm256_packus_epi32(v, v), 0x08);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(v));
}
INLINE floats lanes_first_halves(lanes v) {
    return lanes_second_halves(_mm256_slli_epi32(v, 16));
}

#include "kernels/blocks_body.h"

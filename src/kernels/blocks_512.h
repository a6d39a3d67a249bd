// SPDX-License-Identifier: Apache-2.0
// Products with blocks on AVX-512, for a file that defines NAME(type): two parts in a register;
// vpdpbusd multiplies codes without sign.
#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/blocks_x86.h"
#include "kernels/vec_words.h"

enum { SIGNED_CODES = false };

typedef __m512i codes;
typedef __m512 wide;
typedef struct {
    __m256 of_32; // for each part
    __m512 of_16; // or for each half of one
} sums;

enum { LANES = 16, TOGETHER = 8, PANEL_COLUMNS = 5 };
typedef __m512i lanes;
typedef __m512 floats;
typedef struct {
    __m512i high, low;
} dots;

// ---- Codes

INLINE codes twice(const void *p) { // 32 bytes
    return _mm512_broadcast_i64x4(_mm256_loadu_si256(p));
}
INLINE codes keep(codes v, char mask) {
    return _mm512_and_si512(v, _mm512_set1_epi8(mask));
}
INLINE codes codes_load(const unsigned char *first, const unsigned char *second) {
    codes v = _mm512_castsi256_si512(_mm256_loadu_si256((const void *)first));
    return _mm512_inserti64x4(v, _mm256_loadu_si256((const void *)second), 1);
}
INLINE codes codes_nibbles(const unsigned char *first, const unsigned char *second) {
    __m256i low = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)first));
    codes v = _mm512_mask_broadcast_i32x4(_mm512_castsi256_si512(low), 0xff00,
                                          _mm_loadu_si128((const void *)second));
    return keep(_mm512_srlv_epi64(v, _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4)), 15);
}
INLINE codes codes_low_high(const unsigned char *p) {
    return keep(_mm512_srlv_epi64(twice(p), _mm512_setr_epi64(0, 0, 0, 0, 4, 4, 4, 4)), 15);
}
INLINE codes codes_two_bits(const unsigned char *p, int i) {
    const codes shift = _mm512_setr_epi64(0, 0, 0, 0, 2, 2, 2, 2);
    return keep(_mm512_srlv_epi64(twice(p), _mm512_add_epi64(shift, _mm512_set1_epi64(4 * i))), 3);
}
INLINE codes codes_six_bits(const unsigned char *low, const unsigned char *high, int i) {
    const codes shift = _mm512_setr_epi64(4, 4, 4, 4, 2, 2, 2, 2);
    codes nibbles = keep(_mm512_srli_epi64(_mm512_loadu_si512(low), 4 * (unsigned)i), 15);
    codes pairs = _mm512_rolv_epi64(twice(high), _mm512_sub_epi64(shift, _mm512_set1_epi64(4 * i)));
    return _mm512_ternarylogic_epi64(nibbles, pairs, _mm512_set1_epi8(0x30), 0xf8); // a | b & c
}
INLINE codes codes_or_bits(codes v, const unsigned char *p, int bit, char value) {
    codes bits = _mm512_inserti64x4(_mm512_set1_epi8((char)(1 << bit)),
                                    _mm256_set1_epi8((char)(2 << bit)), 1);
    return _mm512_mask_add_epi8(v, _mm512_test_epi8_mask(twice(p), bits), v,
                                _mm512_set1_epi8(value));
}
INLINE codes codes_add_16(codes v, const unsigned char *first, const unsigned char *second) {
    __mmask64 bits = u32_at(first) | (uint64_t)u32_at(second) << 32;
    return _mm512_mask_add_epi8(v, bits, v, _mm512_set1_epi8(16));
}
INLINE codes codes_of_signed(codes v) {
    return _mm512_xor_si512(v, _mm512_set1_epi8((char)0x80));
}
INLINE codes codes_lookup(const uint8_t table[16], codes v) {
    __m128i values = _mm_loadu_si128((const void *)table);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(values), v);
}
// Each byte of v times its factor, modulo 256, times 3, over 256.
INLINE codes codes_digits(codes v, const uint8_t factor[64]) {
    const __m512i low = _mm512_set1_epi16(0xff), three = _mm512_set1_epi16(3);
    __m512i by = _mm512_loadu_si512(factor);
    __m512i even = _mm512_and_si512(_mm512_mullo_epi16(v, by), low);
    __m512i odd = _mm512_and_si512(
        _mm512_mullo_epi16(_mm512_srli_epi16(v, 8), _mm512_srli_epi16(by, 8)), low);
    even = _mm512_srli_epi16(_mm512_mullo_epi16(even, three), 8);
    odd = _mm512_andnot_si512(low, _mm512_mullo_epi16(odd, three));
    return _mm512_or_si512(even, odd);
}

#include "kernels/blocks_arranged_512.h"

// ---- Sixteen floats

INLINE wide wide_of_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    __m128i v = _mm_setr_epi32((int)a, (int)b, (int)c, (int)d);
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(v));
}
#define WIDE_OF_K
INLINE wide wide_of_k(const unsigned char *b) {
    const __m128i low_bits = _mm_setr_epi32(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f);
    const __m128i high_bits = _mm_setr_epi32(0, 0x30303030, 0, 0x30303030);
    const __m512i by = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    __m128i v = _mm_loadu_si128((const void *)b);
    __m128i low = _mm_srlv_epi32(_mm_shuffle_epi32(v, 0xed), _mm_setr_epi32(0, 0, 0, 4));
    __m128i high = _mm_srlv_epi32(_mm_shuffle_epi32(v, 0xa5), _mm_setr_epi32(0, 2, 0, 2));
    __m128i six = _mm_or_si128(_mm_and_si128(low, low_bits), _mm_and_si128(high, high_bits));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(six)),
                         _mm512_permutexvar_ps(by, _mm512_castps128_ps512(_mm_cvtph_ps(v))));
}
INLINE wide wide_of_signed(const unsigned char *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)p)));
}
INLINE wide wide_times(wide v, float low, float high) {
    wide by = _mm512_mask_broadcastss_ps(_mm512_set1_ps(low), 0xff00, _mm_set_ss(high));
    return _mm512_mul_ps(v, by);
}
INLINE wide wide_less(wide v, float x) {
    return _mm512_sub_ps(v, _mm512_set1_ps(x));
}
INLINE void wide_split(wide v, halves *low, halves *high) {
    *low = _mm512_castps512_ps256(v);
    *high = _mm512_extractf32x8_ps(v, 1);
}

INLINE halves wide_fold(wide v) {
    return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}

// ---- Products

INLINE sums sums_zero(void) {
    return (sums){_mm256_setzero_ps(), _mm512_setzero_ps()};
}
INLINE halves sums_of_parts(const sums *sum) {
    return sum->of_32;
}
INLINE void sums_set_parts(sums *sum, halves v) {
    sum->of_32 = v;
}
INLINE float sums_total(const sums *sum, bool by_16) {
    return halves_total(by_16 ? wide_fold(sum->of_16) : sum->of_32);
}
INLINE __m512i exact_pair(codes code, const struct st_blocks_chunk *x, size_t i) {
    codes high = _mm512_loadu_si512(x->high + 64 * i), low = _mm512_loadu_si512(x->low + 64 * i);
    __m512i exact = _mm512_dpbusd_epi32(_mm512_setzero_si512(), code, high);
    return _mm512_dpbusd_epi32(_mm512_slli_epi32(exact, 7), code, low);
}
INLINE __m512i add_neighbours_32(__m512i a, __m512i b) {
    return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}
INLINE __m512i add_neighbours_64(__m512i a, __m512i b) {
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}
// Sums of 16 elements each: half-part 4 i + j is lane 4 j + i.
INLINE __m512i sixteen_sums(const codes *code, size_t n_pairs, const struct st_blocks_chunk *x) {
    __m512i exact[4];
    UNROLLED for (size_t i = 0; i < 4; i++) exact[i] =
        i < n_pairs ? exact_pair(code[i], x, i) : _mm512_setzero_si512();
    return add_neighbours_64(add_neighbours_32(exact[0], exact[1]),
                             add_neighbours_32(exact[2], exact[3]));
}
INLINE void sums_add_parts(sums *sum, part_sums parts, halves scale, halves minimum,
                           const struct st_blocks_chunk *x, bool minima) {
    (void)minima;
    sum->of_32 = halves_add_parts(sum->of_32, parts, scale, minimum, _mm256_loadu_ps(x->scale),
                                  _mm256_loadu_ps(x->sum), true);
}
INLINE void sums_add_32(sums *sum, const codes *code, halves scale, halves minimum, size_t n_pairs,
                        const struct st_blocks_chunk *x, int bits, bool minima) {
    (void)bits;
    const __m512i at = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 0, 0, 0, 0, 0, 0, 0, 0);
    __m512i exact = sixteen_sums(code, n_pairs, x);
    exact = _mm512_add_epi32(exact, _mm512_shuffle_i32x4(exact, exact, 0xb1));
    part_sums parts = _mm512_castsi512_si256(_mm512_permutexvar_epi32(at, exact));
    sums_add_parts(sum, parts, scale, minimum, x, minima);
}
// Two rows of parts of 32: eight sums of the first, then eight of the second.
#define TWO_ROWS
typedef __m512 two;
INLINE two two_zero(void) {
    return _mm512_setzero_ps();
}
INLINE two two_halves(halves first, halves second) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(first), second, 1);
}
INLINE two two_of(const float *p) {
    return _mm512_broadcast_f32x8(_mm256_loadu_ps(p));
}
INLINE two two_add(two sum, const codes *first, const codes *second, two scale, two minimum,
                   size_t n_pairs, const struct st_blocks_chunk *x) {
    const __m512i even =
        _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 16, 24, 17, 25, 18, 26, 19, 27);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(4));
    __m512i a = sixteen_sums(first, n_pairs, x), b = sixteen_sums(second, n_pairs, x);
    __m512i exact = _mm512_add_epi32(_mm512_permutex2var_epi32(a, even, b),
                                     _mm512_permutex2var_epi32(a, odd, b));
    sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), _mm512_mul_ps(scale, two_of(x->scale)), sum);
    return _mm512_fnmadd_ps(minimum, two_of(x->sum), sum);
}
INLINE void two_split(two sum, sums *first, sums *second) {
    *first = *second = sums_zero();
    first->of_32 = _mm512_castps512_ps256(sum);
    second->of_32 = _mm512_extractf32x8_ps(sum, 1);
}
INLINE void sums_add_16(sums *sum, const codes *code, wide scale, wide minimum, size_t n_pairs,
                        const struct st_blocks_chunk *x, int bits) {
    (void)bits;
    const __m512i at = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i both = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    __m512i exact = _mm512_permutexvar_epi32(at, sixteen_sums(code, n_pairs, x));
    wide of_x = _mm512_permutexvar_ps(both, _mm512_zextps256_ps512(_mm256_loadu_ps(x->scale)));
    wide scales = _mm512_mul_ps(scale, of_x);
    sum->of_16 = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), scales, sum->of_16);
    sum->of_16 = _mm512_fnmadd_ps(minimum, _mm512_loadu_ps(x->half_sum), sum->of_16);
}

// ---- Panels

INLINE void codes_store(unsigned char *p, codes v) {
    _mm512_storeu_si512(p, v);
}
INLINE void wide_store(float *p, wide v) {
    _mm512_storeu_ps(p, v);
}
INLINE lanes lanes_load(const void *p) {
    return _mm512_loadu_si512(p);
}
INLINE lanes four(const int8_t *p) {
    return _mm512_set1_epi32((int)u32_at(p));
}
INLINE void dots_add(dots *d, lanes w, const struct st_blocks_chunk *x, size_t first, size_t i,
                     int bits) {
    size_t group = first + i;
    (void)bits;
    d->high = _mm512_dpbusd_epi32(d->high, w, four(x->high + 4 * group));
    d->low = _mm512_dpbusd_epi32(d->low, w, four(x->low + 4 * group));
}
INLINE floats dots_total(const dots *d, int bits) {
    (void)bits;
    return _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(d->high, 7), d->low));
}
INLINE dots dots_zero(void) {
    return (dots){_mm512_setzero_si512(), _mm512_setzero_si512()};
}
INLINE floats floats_load(const float *p) {
    return _mm512_loadu_ps(p);
}
INLINE void floats_store(float *p, floats v) {
    _mm512_storeu_ps(p, v);
}
INLINE floats floats_set1(float x) {
    return _mm512_set1_ps(x);
}
INLINE floats floats_add(floats a, floats b) {
    return _mm512_add_ps(a, b);
}
INLINE floats floats_mul(floats a, floats b) {
    return _mm512_mul_ps(a, b);
}
INLINE floats floats_fma(floats a, floats b, floats c) {
    return _mm512_fmadd_ps(a, b, c);
}
INLINE floats floats_fnma(floats a, floats b, floats c) {
    return _mm512_fnmadd_ps(a, b, c);
}

#define PACKED
#define PACKED_BYTES
INLINE void lanes_store(void *p, lanes v) {
    _mm512_storeu_si512(p, v);
}
INLINE void transpose(const unsigned char *from, size_t row_bytes, unsigned char *to) {
    UNROLLED for (size_t i = 0; i < 4; i++) {
        lanes column[4];
        vi_columns(from + 16 * i, row_bytes, column);
        UNROLLED for (size_t j = 0; j < 4; j++) lanes_store(to + 64 * (4 * i + j), column[j]);
    }
}
INLINE lanes lanes_low(lanes v) {
    return keep(v, 15);
}
INLINE lanes lanes_high(lanes v) {
    return keep(_mm512_srli_epi16(v, 4), 15);
}
INLINE lanes lanes_lookup(const uint8_t table[16], lanes v) {
    return codes_lookup(table, v);
}
INLINE lanes lanes_of_signed(lanes v) {
    return codes_of_signed(v);
}
// 16 more in byte i where bit 4 group + i of the lane of `bits` is set.
INLINE lanes lanes_add_fifths(lanes v, lanes bits, size_t group) {
    return add_fifths(v, bits, group, group);
}
// Of the two halves in each lane.
INLINE floats lanes_first_halves(lanes v) {
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v));
}
INLINE floats lanes_second_halves(lanes v) {
    return lanes_first_halves(_mm512_srli_epi32(v, 16));
}

#include "kernels/blocks_body.h"

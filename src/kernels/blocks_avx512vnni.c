// SPDX-License-Identifier: Apache-2.0
// Two parts in a register; vpdpbusd multiplies codes without sign.
#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/blocks_x86.h"

#define NAME(type) st_blocks_##type##_avx512vnni

enum { SIGNED_CODES = false };

typedef __m512i codes;
typedef __m512 wide;
typedef struct {
    __m512 of[2];
} sums;

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
    codes v = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)first));
    v = _mm512_mask_broadcast_i32x4(v, 0xff00, _mm_loadu_si128((const void *)second));
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

// ---- Sixteen floats

INLINE wide wide_of_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    __m128i v = _mm_setr_epi32((int)a, (int)b, (int)c, (int)d);
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(v));
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

// ---- Products

INLINE sums sums_zero(void) {
    return (sums){{_mm512_setzero_ps(), _mm512_setzero_ps()}};
}
INLINE float sums_total(const sums *sum) {
    return _mm512_reduce_add_ps(_mm512_add_ps(sum->of[0], sum->of[1]));
}
INLINE void add_pair(sums *sum, codes code, const struct st_blocks_chunk *x, wide scale, size_t i) {
    codes high = _mm512_loadu_si512(x->high + 64 * i), low = _mm512_loadu_si512(x->low + 64 * i);
    __m512i exact = _mm512_dpbusd_epi32(_mm512_setzero_si512(), code, high);
    exact = _mm512_dpbusd_epi32(_mm512_slli_epi32(exact, 7), code, low);
    sum->of[i % 2] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), scale, sum->of[i % 2]);
}
INLINE __m512i index_of(__m512i first, size_t i, int step) {
    return _mm512_add_epi32(first, _mm512_set1_epi32((int)i * step));
}
INLINE void sums_add_32(sums *sum, const codes *code, halves scale, halves minimum, size_t n_pairs,
                        const struct st_blocks_chunk *x, bool eight_bits, bool minima) {
    (void)eight_bits;
    (void)minima;
    const __m512i at = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    wide scales = _mm512_zextps256_ps512(_mm256_mul_ps(scale, _mm256_loadu_ps(x->scale)));
    UNROLLED for (size_t i = 0; i < n_pairs; i++)
        add_pair(sum, code[i], x, _mm512_permutexvar_ps(index_of(at, i, 2), scales), i);
    sum->of[0] = _mm512_fnmadd_ps(_mm512_zextps256_ps512(minimum),
                                  _mm512_zextps256_ps512(_mm256_loadu_ps(x->sum)), sum->of[0]);
}
INLINE void sums_add_16(sums *sum, const codes *code, wide scale, wide minimum, size_t n_pairs,
                        const struct st_blocks_chunk *x) {
    const __m512i at = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m512i both = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    wide of_x = _mm512_permutexvar_ps(both, _mm512_zextps256_ps512(_mm256_loadu_ps(x->scale)));
    wide scales = _mm512_mul_ps(scale, of_x);
    UNROLLED for (size_t i = 0; i < n_pairs; i++)
        add_pair(sum, code[i], x, _mm512_permutexvar_ps(index_of(at, i, 4), scales), i);
    sum->of[0] = _mm512_fnmadd_ps(minimum, _mm512_loadu_ps(x->half_sum), sum->of[0]);
}

#include "kernels/blocks_body.h"

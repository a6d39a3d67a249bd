// SPDX-License-Identifier: Apache-2.0
// Whole numbers in vectors, beside the floats of vec.h: codes of 8 bits become words of 16 bits,
// whose products are summed in lanes of 32 bits. On x86 alone: VEC_WORDS says that it is there.
#ifndef ST_KERNELS_VEC_WORDS_H
#define ST_KERNELS_VEC_WORDS_H

#include "kernels/vec.h"

#if defined(__AVX2__)
#define VEC_WORDS

// Two words in every lane.
static inline vi vi_pair(const int16_t pair[2]) {
    int32_t both;
    memcpy(&both, pair, sizeof both);
#if defined(__AVX512F__)
    return _mm512_set1_epi32(both);
#else
    return _mm256_set1_epi32(both);
#endif
}

#if defined(__AVX512F__)

static inline vi vi_zero(void) {
    return _mm512_setzero_si512();
}
static inline vf vi_floats(vi v) {
    return _mm512_cvtepi32_ps(v);
}
static inline vi vi_max(vi a, vi b) {
    return _mm512_max_epi32(a, b);
}
static inline vi vi_magnitude_bits(vf x) {
    return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
}
static inline int32_t vi_largest(vi v) {
    return _mm512_reduce_max_epi32(v);
}
// sum + a[0] b[0] + a[1] b[1], of the two words in each lane.
static inline vi vi_dot(vi sum, vi a, vi b) {
#if defined(__AVX512VNNI__)
    return _mm512_dpwssd_epi32(sum, a, b);
#else
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
#endif
}
// Bytes 0 and 2, or 1 and 3, of each lane as words.
static inline vi vi_even_bytes(vi v) {
    return _mm512_srai_epi16(_mm512_slli_epi16(v, 8), 8);
}
static inline vi vi_odd_bytes(vi v) {
    return _mm512_srai_epi16(v, 8);
}
// The lower or the upper half of each lane, as the upper half of a float.
static inline vf vi_low_bf16(vi v) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
}
static inline vf vi_high_bf16(vi v) {
    return _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32((int)0xffff0000)));
}
// 16 bytes of rows i, 4 + i, 8 + i and 12 + i. Loads that fill a lane leave the port of shuffles
// free, which is what transposing waits for.
static inline vi vi_rows(const void *rows, size_t row_bytes, size_t i) {
    const char *from = (const char *)rows + i * row_bytes;
    vi v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)from));
    _Pragma("GCC unroll 4") for (size_t l = 1; l < 4; l++) v = _mm512_mask_broadcast_i32x4(
        v, (__mmask16)(15u << 4 * l), _mm_loadu_si128((const void *)(from + 4 * l * row_bytes)));
    return v;
}
static inline vi vi_unpack_low_32(vi a, vi b) {
    return _mm512_unpacklo_epi32(a, b);
}
static inline vi vi_unpack_high_32(vi a, vi b) {
    return _mm512_unpackhi_epi32(a, b);
}
static inline vi vi_unpack_low_64(vi a, vi b) {
    return _mm512_unpacklo_epi64(a, b);
}
static inline vi vi_unpack_high_64(vi a, vi b) {
    return _mm512_unpackhi_epi64(a, b);
}
static inline vi vi_unpack_low_16(vi a, vi b) {
    return _mm512_unpacklo_epi16(a, b);
}
static inline vi vi_unpack_high_16(vi a, vi b) {
    return _mm512_unpackhi_epi16(a, b);
}
static inline vi vi_unpack_low_8(vi a, vi b) {
    return _mm512_unpacklo_epi8(a, b);
}
static inline vi vi_unpack_high_8(vi a, vi b) {
    return _mm512_unpackhi_epi8(a, b);
}
// The first n of 64 bytes, zeros behind them: those of each half of 32, eight by eight in turns, so
// that the unpacked lower halves are of the first half alone.
static inline vi vi_bytes(const char *p, size_t n) {
    const vi turns = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    vi v = n >= 64 ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi8(((uint64_t)1 << n) - 1, p);
    return _mm512_permutexvar_epi64(turns, v);
}
// Which of them is in lane e of vector i of vi_interleave().
static inline size_t vi_byte_at(size_t i, size_t e) {
    return 32 * (i / 2) + 4 * (i % 2) + 8 * (e / 4) + e % 4;
}
// Rounded, of each four in the order 0, 2, 1, 3.
static inline void vi_store_words(int16_t *p, vf x) {
    vi v = _mm512_shuffle_epi32(_mm512_cvtps_epi32(x), 0xd8);
    _mm256_storeu_si256((void *)p, _mm512_cvtepi32_epi16(v));
}

#else

static inline vi vi_zero(void) {
    return _mm256_setzero_si256();
}
static inline vf vi_floats(vi v) {
    return _mm256_cvtepi32_ps(v);
}
static inline vi vi_max(vi a, vi b) {
    return _mm256_max_epi32(a, b);
}
static inline vi vi_magnitude_bits(vf x) {
    return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
}
static inline int32_t vi_largest(vi v) {
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}
static inline vi vi_dot(vi sum, vi a, vi b) {
#if defined(__AVXVNNI__)
    return _mm256_dpwssd_avx_epi32(sum, a, b);
#else
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
#endif
}
static inline vi vi_even_bytes(vi v) {
    return _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8);
}
static inline vi vi_odd_bytes(vi v) {
    return _mm256_srai_epi16(v, 8);
}
static inline vf vi_low_bf16(vi v) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
}
static inline vf vi_high_bf16(vi v) {
    return _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32((int)0xffff0000)));
}
// 16 bytes of rows i and 4 + i.
static inline vi vi_rows(const void *rows, size_t row_bytes, size_t i) {
    const char *from = (const char *)rows + i * row_bytes;
    __m128i low = _mm_loadu_si128((const void *)from);
    __m128i high = _mm_loadu_si128((const void *)(from + 4 * row_bytes));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}
static inline vi vi_unpack_low_32(vi a, vi b) {
    return _mm256_unpacklo_epi32(a, b);
}
static inline vi vi_unpack_high_32(vi a, vi b) {
    return _mm256_unpackhi_epi32(a, b);
}
static inline vi vi_unpack_low_64(vi a, vi b) {
    return _mm256_unpacklo_epi64(a, b);
}
static inline vi vi_unpack_high_64(vi a, vi b) {
    return _mm256_unpackhi_epi64(a, b);
}
static inline vi vi_unpack_low_16(vi a, vi b) {
    return _mm256_unpacklo_epi16(a, b);
}
static inline vi vi_unpack_high_16(vi a, vi b) {
    return _mm256_unpackhi_epi16(a, b);
}
static inline vi vi_unpack_low_8(vi a, vi b) {
    return _mm256_unpacklo_epi8(a, b);
}
static inline vi vi_unpack_high_8(vi a, vi b) {
    return _mm256_unpackhi_epi8(a, b);
}
// The first n of 32 bytes, zeros behind them; n is a multiple of 16.
static inline vi vi_bytes(const char *p, size_t n) {
    if (n >= 32) return _mm256_loadu_si256((const void *)p);
    return _mm256_zextsi128_si256(_mm_loadu_si128((const void *)p));
}
static inline size_t vi_byte_at(size_t i, size_t e) {
    return 4 * i + 16 * (e / 4) + e % 4;
}
static inline void vi_store_words(int16_t *p, vf x) {
    vi v = _mm256_shuffle_epi32(_mm256_cvtps_epi32(x), 0xd8);
    v = _mm256_permute4x64_epi64(_mm256_packs_epi32(v, v), 0xd8);
    _mm_storeu_si128((void *)p, _mm256_castsi256_si128(v));
}

#endif

// The largest magnitude of x[0, n), n a multiple of VF_LANES; NaN is above all.
static inline float vi_max_magnitude(const float *x, size_t n) {
    vi most = vi_zero();
    for (size_t i = 0; i < n; i += VF_LANES) most = vi_max(most, vi_magnitude_bits(vf_load(x + i)));
    int32_t bits = vi_largest(most);
    float max;
    memcpy(&max, &bits, sizeof max);
    return max;
}
// Of four vectors, as rows of 4 lanes in each 16 bytes: their columns.
static inline __attribute__((always_inline)) void vi_transpose(vi v[4]) {
    vi low = vi_unpack_low_32(v[0], v[1]), low_2 = vi_unpack_low_32(v[2], v[3]);
    vi high = vi_unpack_high_32(v[0], v[1]), high_2 = vi_unpack_high_32(v[2], v[3]);
    v[0] = vi_unpack_low_64(low, low_2);
    v[1] = vi_unpack_high_64(low, low_2);
    v[2] = vi_unpack_low_64(high, high_2);
    v[3] = vi_unpack_high_64(high, high_2);
}
// Columns of VF_LANES rows, row_bytes apart: of 16 bytes of each, four in its lane.
static inline __attribute__((always_inline)) void vi_columns(const void *rows, size_t row_bytes,
                                                             vi column[4]) {
    _Pragma("GCC unroll 4") for (size_t i = 0; i < 4; i++) column[i] = vi_rows(rows, row_bytes, i);
    vi_transpose(column);
}
// A byte of each of four vectors in every lane.
static inline __attribute__((always_inline)) void vi_interleave(const vi v[4], vi out[4]) {
    vi low = vi_unpack_low_8(v[0], v[1]), low_2 = vi_unpack_low_8(v[2], v[3]);
    vi high = vi_unpack_high_8(v[0], v[1]), high_2 = vi_unpack_high_8(v[2], v[3]);
    out[0] = vi_unpack_low_16(low, low_2);
    out[1] = vi_unpack_high_16(low, low_2);
    out[2] = vi_unpack_low_16(high, high_2);
    out[3] = vi_unpack_high_16(high, high_2);
}

#endif
#endif

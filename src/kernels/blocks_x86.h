// SPDX-License-Identifier: Apache-2.0
// What the products with blocks on AVX2 and on AVX-512 share: the halves of a block's scales.
#ifndef ST_KERNELS_BLOCKS_X86_H
#define ST_KERNELS_BLOCKS_X86_H

#include "base/size.h"
#include "kernels/prefetch.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE   static inline __attribute__((always_inline))
#define UNROLLED _Pragma("GCC unroll 16")

typedef __m256 halves;

INLINE uint32_t u32_at(const void *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
INLINE uint16_t half_bits(const unsigned char *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
INLINE float half_at(const unsigned char *p) {
    return _cvtsh_ss(half_bits(p));
}
INLINE __m256i load_256(const void *p) {
    return _mm256_loadu_si256(p);
}
INLINE __m256i eight_of(const void *p) { // 4 bytes
    return _mm256_set1_epi32((int)u32_at(p));
}
INLINE halves halves_times(halves v, float x) {
    return _mm256_mul_ps(v, _mm256_set1_ps(x));
}
INLINE halves halves_set1(float x) {
    return _mm256_set1_ps(x);
}

// Four bytes at p[i * stride], i up to `last` and that one again. Put together outside of the
// vector units, which would shuffle once for each.
INLINE uint32_t four_bytes_at(const unsigned char *p, size_t stride, size_t first, size_t last) {
    uint32_t v = 0;
    UNROLLED for (size_t i = 0; i < 4; i++) v |= (uint32_t)p[st_min(first + i, last) * stride]
                                                 << 8 * i;
    return v;
}

// st_mxfp4_scale() of the byte at p[i * stride] for i in [0, n), zeros behind them; n in [1, 8].
// Twice that is the float with this exponent, but for exponent 0, where it is subnormal.
INLINE halves halves_of_exponents(const unsigned char *p, size_t stride, size_t n) {
    uint64_t low = four_bytes_at(p, stride, 0, n - 1), high = four_bytes_at(p, stride, 4, n - 1);
    __m256i v = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)(high << 32 | low)));
    v = _mm256_max_epu32(_mm256_slli_epi32(v, 23), _mm256_set1_epi32(0x00400000));
    __m256i there =
        _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    if (n < 8) v = _mm256_and_si256(v, there);
    return _mm256_mul_ps(_mm256_castsi256_ps(v), _mm256_set1_ps(0.5f));
}

// The half at p[i * stride] for i in [0, n), zeros behind them; n in [1, 8].
INLINE halves halves_one_by_one(const unsigned char *p, size_t stride, size_t n) {
    short h[8];
    UNROLLED for (size_t i = 0; i < 8; i++) h[i] = (short)half_bits(p + st_min(i, n - 1) * stride);
    __m128i v = _mm_setr_epi16(h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]);
    __m128i there =
        _mm_cmpgt_epi16(_mm_set1_epi16((short)n), _mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_cvtph_ps(n == 8 ? v : _mm_and_si128(v, there));
}

// Two halves at p[i * stride].
INLINE void halves_pairs_one_by_one(const unsigned char *p, size_t stride, size_t n, halves *first,
                                    halves *second) {
    uint32_t h[8];
    UNROLLED for (size_t i = 0; i < 8; i++) h[i] =
        i < n ? u32_at(p + st_min(i, n - 1) * stride) : 0;
    __m128i low = _mm_setr_epi32((int)h[0], (int)h[1], (int)h[2], (int)h[3]);
    __m128i high = _mm_setr_epi32((int)h[4], (int)h[5], (int)h[6], (int)h[7]);
    __m256 a = _mm256_cvtph_ps(low), b = _mm256_cvtph_ps(high);
    __m256d even = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
    __m256d odd = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
    *first = _mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xd8));
    *second = _mm256_castpd_ps(_mm256_permute4x64_pd(odd, 0xd8));
}

// Sums plus exact * scale * x_scale - minimum * x_sum, of eight parts.
INLINE halves halves_add_parts(halves sum, __m256i exact, halves scale, halves minimum,
                               halves x_scale, halves x_sum, bool minima) {
    sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(exact), _mm256_mul_ps(scale, x_scale), sum);
    return minima ? _mm256_fnmadd_ps(minimum, x_sum, sum) : sum;
}

// ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)).
INLINE float halves_total(halves v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
INLINE void halves_store(float *p, halves v) {
    _mm256_storeu_ps(p, v);
}

INLINE void prefetch(const unsigned char *p, size_t bytes) {
    st_prefetch(p, bytes);
}

// ---- Rows that share a chunk (blocks_shared.h): n_parts parts, two or four, of four or two rows

enum { SHARING = 4 }; // most rows

// p[n_parts] again and again.
INLINE halves halves_repeat(const float *p, size_t n_parts) {
    if (n_parts == 4) return _mm256_broadcast_ps((const __m128 *)(const void *)p);
    double two;
    memcpy(&two, p, sizeof two);
    return _mm256_castpd_ps(_mm256_set1_pd(two));
}
// The first n_parts of each row.
INLINE halves halves_shared(const halves *row, size_t n_parts) {
    if (n_parts == 4) return _mm256_permute2f128_ps(row[0], row[1], 0x20);
    __m128 low = _mm_movelh_ps(_mm256_castps256_ps128(row[0]), _mm256_castps256_ps128(row[1]));
    __m128 high = _mm_movelh_ps(_mm256_castps256_ps128(row[2]), _mm256_castps256_ps128(row[3]));
    return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
}
// And back.
INLINE void halves_share_out(halves v, size_t n_parts, halves *row) {
    __m256 upper = _mm256_castps128_ps256(_mm256_extractf128_ps(v, 1));
    if (n_parts == 4) {
        row[0] = _mm256_blend_ps(row[0], v, 0x0f);
        row[1] = _mm256_blend_ps(row[1], upper, 0x0f);
        return;
    }
    row[0] = _mm256_blend_ps(row[0], v, 0x03);
    row[1] = _mm256_blend_ps(row[1], _mm256_permute_ps(v, 0xee), 0x03);
    row[2] = _mm256_blend_ps(row[2], upper, 0x03);
    row[3] = _mm256_blend_ps(row[3], _mm256_permute_ps(upper, 0xee), 0x03);
}

#endif

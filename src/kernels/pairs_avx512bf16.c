// SPDX-License-Identifier: Apache-2.0
// AVX-512 BF16: the register tile of tile_body.h with a dot product of two elements in place of a
// multiply-add.
#include "kernels/pairs_rows.h"

#include <immintrin.h>

#define TILE_M       8
#define TILE_VECTORS 3
#define TILE_ELEMENT uint32_t

static inline __m512 element_load(const uint32_t *p) {
    return _mm512_castsi512_ps(_mm512_loadu_si512(p));
}
static inline __m512 element_set1(uint32_t x) {
    return _mm512_castsi512_ps(_mm512_set1_epi32((int32_t)x));
}
static inline __m512 element_add_product(__m512 a, __m512 b, __m512 c) {
    return _mm512_dpbf16_ps(c, (__m512bh)_mm512_castps_si512(a), (__m512bh)_mm512_castps_si512(b));
}

#include "kernels/tile_body.h"

void st_pair_tile_avx512bf16_1(size_t k, const uint32_t *a, size_t a_row, size_t a_col,
                               const uint32_t *b, float *c, size_t c_row) {
    tile_any_stride(1, k, a, a_row, a_col, b, c, c_row);
}

void st_pair_tile_avx512bf16_2(size_t k, const uint32_t *a, size_t a_row, size_t a_col,
                               const uint32_t *b, float *c, size_t c_row) {
    tile_any_stride(2, k, a, a_row, a_col, b, c, c_row);
}

void st_pair_tile_avx512bf16_3(size_t k, const uint32_t *a, size_t a_row, size_t a_col,
                               const uint32_t *b, float *c, size_t c_row) {
    tile_any_stride(3, k, a, a_row, a_col, b, c, c_row);
}

// The first n elements, then zeros.
INLINE __m512 floats(const float *x, size_t n) {
    return n >= VF_LANES ? vf_load(x) : vf_load_n(x, n);
}

INLINE void store(uint32_t *out, __m512i pairs, size_t n) {
    if (n >= VF_LANES)
        _mm512_storeu_si512(out, pairs);
    else
        _mm512_mask_storeu_epi32(out, (__mmask16)((1u << n) - 1), pairs);
}

// Elements 0..15 of `first`, then those of `second`.
INLINE __m512i joined(__m512 first, __m512 second) {
    return (__m512i)_mm512_cvtne2ps_pbh(second, first);
}

INLINE __m512i zipped(__m512 even, __m512 odd) {
    __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(even));
    __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(odd));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

void st_pair_join_avx512bf16(const float *x, size_t n, uint32_t *out) {
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t rest = 2 * (n - i), second = rest > VF_LANES ? rest - VF_LANES : 0;
        store(out + i, joined(floats(x + 2 * i, rest), floats(x + 2 * i + VF_LANES, second)),
              n - i);
    }
}

void st_pair_zip_avx512bf16(const float *x, size_t n_rows, size_t n, uint32_t *out) {
    for (size_t r = 0; r < n_rows; r += 2, x += 2 * n, out += n)
        for (size_t i = 0; i < n; i += VF_LANES) {
            __m512 odd = r + 1 < n_rows ? floats(x + n + i, n - i) : vf_zero();
            store(out + i, zipped(floats(x + i, n - i), odd), n - i);
        }
}

// SPDX-License-Identifier: Apache-2.0
// AVX2: vpmaddwd multiplies twice as many pairs at a time as there are floats in a vector.
#include "kernels/int16_rows.h"
#include "kernels/quantize_float.h"

#include <immintrin.h>

#define UNROLL _Pragma("GCC unroll 6")
#define INLINE static inline __attribute__((always_inline))

enum { M = 6, VECTORS = 2, LANES = 8 };

INLINE __m256i load(const uint32_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

// In place: GCC 12 copies sums otherwise, and spills them.
INLINE void add(__m256i *sum, __m256i x) {
    __asm__("vpaddd %1, %0, %0" : "+x"(*sum) : "x"(x));
}

INLINE void tile(size_t n_vectors, size_t k, const uint32_t *a, size_t a_row, const float *a_scale,
                 const uint32_t *b, const float *b_scale, float *c, size_t c_row) {
    __m256i sum[M][VECTORS];
    UNROLL for (size_t m = 0; m < M; m++) UNROLL for (size_t v = 0; v < n_vectors; v++) sum[m][v] =
        _mm256_setzero_si256();
    UNROLL for (size_t m = 0; m < M; m++) _mm_prefetch((const char *)(c + m * c_row), _MM_HINT_T0);
    for (size_t i = 0; i < k; i++, a++, b += n_vectors * LANES) {
        __m256i x[VECTORS];
        UNROLL for (size_t v = 0; v < n_vectors; v++) x[v] = load(b + v * LANES);
        UNROLL for (size_t m = 0; m < M; m++) {
            __m256i w = _mm256_set1_epi32((int32_t)a[m * a_row]);
            UNROLL for (size_t v = 0; v < n_vectors; v++)
                add(&sum[m][v], _mm256_madd_epi16(w, x[v]));
        }
    }
    UNROLL for (size_t m = 0; m < M; m++) UNROLL for (size_t v = 0; v < n_vectors; v++) {
        float *out = c + m * c_row + v * LANES;
        __m256 scale =
            _mm256_mul_ps(_mm256_set1_ps(a_scale[m]), _mm256_loadu_ps(b_scale + v * LANES));
        _mm256_storeu_ps(
            out, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[m][v]), scale, _mm256_loadu_ps(out)));
    }
}

void st_int16_tile_avx2_1(size_t k, const uint32_t *a, size_t a_row, const float *a_scale,
                          const uint32_t *b, const float *b_scale, float *c, size_t c_row) {
    tile(1, k, a, a_row, a_scale, b, b_scale, c, c_row);
}

void st_int16_tile_avx2_2(size_t k, const uint32_t *a, size_t a_row, const float *a_scale,
                          const uint32_t *b, const float *b_scale, float *c, size_t c_row) {
    tile(2, k, a, a_row, a_scale, b, b_scale, c, c_row);
}

// 16 elements, each multiplied with `factor`.
INLINE __m256i quantize_16(const float *x, __m256 factor) {
    __m256i low = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), factor));
    __m256i high = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + LANES), factor));
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
}

// As magnitudes are ordered like their bits. n: a multiple of 16.
INLINE float max_magnitude(const float *x, size_t n) {
    const __m256i positive = _mm256_set1_epi32(INT32_MAX);
    __m256i max[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (size_t i = 0; i < n; i += 2 * LANES)
        UNROLL for (size_t v = 0; v < 2; v++) max[v] = _mm256_max_epi32(
            max[v],
            _mm256_and_si256(load((const uint32_t *)(const void *)(x + i + v * LANES)), positive));
    float lanes[LANES];
    _mm256_storeu_ps(lanes, _mm256_castsi256_ps(_mm256_max_epi32(max[0], max[1])));
    return st_max_magnitude(lanes, LANES);
}

float st_int16_quantize_avx2(const float *x, size_t n, int max_q, int16_t *out) {
    size_t whole = n / 16 * 16;
    float ends[2] = {max_magnitude(x, whole), st_max_magnitude(x + whole, n - whole)};
    float max = st_max_magnitude(ends, 2), factor = st_quantize_factor(max, (float)max_q);
    if (!(factor > 0.0f)) {
        memset(out, 0, n * sizeof *out);
        return max / (float)max_q;
    }
    for (size_t i = 0; i < whole; i += 16)
        _mm256_storeu_si256((__m256i *)(void *)(out + i),
                            quantize_16(x + i, _mm256_set1_ps(factor)));
    for (size_t i = whole; i < n; i++) out[i] = (int16_t)st_round_to_int(x[i] * factor);
    return max / (float)max_q;
}

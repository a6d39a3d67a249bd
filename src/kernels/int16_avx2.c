// SPDX-License-Identifier: Apache-2.0
// AVX2: vpmaddwd multiplies twice as many pairs at a time as there are floats in a vector.
#include "kernels/int16_rows.h"
#include "kernels/quantize_float.h"

#include <immintrin.h>

enum { M = 6, VECTORS = 2, LANES = 8 };

static inline __m256i vi_load(const uint32_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

#define vi_zero   _mm256_setzero_si256
#define vi_set1   _mm256_set1_epi32
#define to_floats _mm256_cvtepi32_ps

// In place: GCC 12 copies sums otherwise, and spills them.
static inline void add_products(__m256i *sum, __m256i w, __m256i x) {
    __asm__("vpaddd %1, %0, %0" : "+x"(*sum) : "x"(_mm256_madd_epi16(w, x)));
}

#include "kernels/int16_body.h"

TILE(st_int16_tile_avx2_1, 1)
TILE(st_int16_tile_avx2_2, 2)

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
            max[v], _mm256_and_si256(vi_load((const uint32_t *)(const void *)(x + i + v * LANES)),
                                     positive));
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

float st_int16_pairs_avx2(const float *x, const float *factor, const float *inverse, size_t n,
                          size_t width, uint32_t *pairs) {
    const __m256 positive = _mm256_castsi256_ps(_mm256_set1_epi32(INT32_MAX));
    const __m256i low_half = _mm256_set1_epi32(0xffff);
    __m256 most = _mm256_setzero_ps();
    for (size_t lane = 0; lane < width; lane += LANES) {
        __m256 by = _mm256_loadu_ps(inverse + lane);
        for (size_t i = 0; i < n; i += 2) {
            const float *at = x + i * width + lane;
            __m256 even = vf_mul(vf_mul(vf_load(at), vf_set1(factor[i])), by);
            __m256 odd = vf_mul(vf_mul(vf_load(at + width), vf_set1(factor[i + 1])), by);
            most = vf_max(_mm256_and_ps(even, positive), most);
            most = vf_max(_mm256_and_ps(odd, positive), most);
            __m256i low = _mm256_and_si256(_mm256_cvtps_epi32(even), low_half);
            __m256i high = _mm256_slli_epi32(_mm256_cvtps_epi32(odd), 16);
            _mm256_storeu_si256((__m256i *)(void *)(pairs + i / 2 * width + lane),
                                _mm256_or_si256(low, high));
        }
    }
    float lanes[LANES];
    vf_store(lanes, most);
    return st_max_magnitude(lanes, LANES);
}

// SPDX-License-Identifier: Apache-2.0
// vpmaddubsw wants one unsigned factor: the input's sign goes to the weight. |x| <= 127 keeps its
// pairwise 16-bit sums within 2 x 127 x 127, so that nothing saturates.
#include "kernels/int8_tiles.h"

#include <immintrin.h>
#include <string.h>

#define UNROLL _Pragma("GCC unroll 4")

enum { STEP = 4 * ST_INT8_PANEL }; // bytes of a panel per 4 elements of k

static inline __m256i four(const uint8_t *x) {
    int32_t v;
    memcpy(&v, x, sizeof v);
    return _mm256_set1_epi32(v);
}

static inline __m256i dot4(__m256i x, __m256i w) {
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(x), _mm256_sign_epi8(w, x));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

// n_tokens is a constant where this is called.
static inline __attribute__((always_inline)) void tile(const int8_t *w, const uint8_t *x,
                                                       size_t x_row, size_t n_tokens, size_t k,
                                                       int32_t *sums, size_t sum_row) {
    __m256i sum[4][2];
    UNROLL for (size_t t = 0; t < n_tokens; t++) sum[t][0] = sum[t][1] = _mm256_setzero_si256();
    for (size_t i = 0; i < k; i += 4, w += STEP) {
        __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)w);
        __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(w + STEP / 2));
        UNROLL for (size_t t = 0; t < n_tokens; t++) {
            __m256i token = four(x + t * x_row + i);
            sum[t][0] = _mm256_add_epi32(sum[t][0], dot4(token, low));
            sum[t][1] = _mm256_add_epi32(sum[t][1], dot4(token, high));
        }
    }
    UNROLL for (size_t t = 0; t < n_tokens; t++) {
        _mm256_storeu_si256((__m256i *)(void *)(sums + t * sum_row), sum[t][0]);
        _mm256_storeu_si256((__m256i *)(void *)(sums + t * sum_row + 8), sum[t][1]);
    }
}

void st_int8_tile_avx2(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                       size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    (void)n_panels; // 1
    if (n_tokens == 4)
        tile(w, x, x_row, 4, k, sums, sum_row);
    else if (n_tokens == 3)
        tile(w, x, x_row, 3, k, sums, sum_row);
    else if (n_tokens == 2)
        tile(w, x, x_row, 2, k, sums, sum_row);
    else
        tile(w, x, x_row, 1, k, sums, sum_row);
}

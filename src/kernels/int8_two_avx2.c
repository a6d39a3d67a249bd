// SPDX-License-Identifier: Apache-2.0
// Two-term INT8 as one number: 254 q + rest fits 16 bits, so vpmaddwd multiplies both terms at
// once, in half the instructions of two products. Sums of a block of k fit 32 bits, those of blocks
// are exact as doubles. They are taken apart again at the end: any two numbers will do of which 254
// times the first plus the second is the sum.
//
// 8 rows by 6 inputs: 12 registers of sums, 2 of weights, an input and a product.
#include "kernels/elementwise.h"
#include "kernels/int8_tiles.h"

#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 6")

enum {
    STEP = 4 * ST_INT8_PANEL, // bytes of a panel per 4 elements of k
    HALF = ST_INT8_PANEL / 2,
    MAX_INPUTS = 6,
    MAX_PANELS = 4,
    K_BLOCK = 512, // two lanes of 128 products of pairs, of at most 2 x 32,385 x 127 each
};

struct sums {
    double of[MAX_INPUTS][MAX_PANELS * ST_INT8_PANEL];
};

INLINE __m256i widen(const void *p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(p));
}

// to[i] = 254 q + rest of n elements; n is a multiple of 64.
INLINE void combine(const uint8_t *q, const uint8_t *rest, size_t n, int16_t *to) {
    const __m256i steps = _mm256_set1_epi16((short)ST_TERM_STEPS);
    for (size_t i = 0; i < n; i += 16)
        _mm256_storeu_si256(
            (void *)(to + i),
            _mm256_add_epi16(_mm256_mullo_epi16(widen(q + i), steps), widen(rest + i)));
}

INLINE __m256i four(const int16_t *x) {
    int64_t v;
    memcpy(&v, x, sizeof v);
    return _mm256_set1_epi64x(v);
}

// Adds the lower and upper lanes' four numbers, whose rows are 0, 1, 4, 5 and 2, 3, 6, 7.
INLINE void add_rows(__m256i low, __m256i high, double *to) {
    __m256i rows = _mm256_permute4x64_epi64(_mm256_hadd_epi32(low, high), 0xd8);
    __m256d first = _mm256_cvtepi32_pd(_mm256_castsi256_si128(rows));
    __m256d second = _mm256_cvtepi32_pd(_mm256_extracti128_si256(rows, 1));
    _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), first));
    _mm256_storeu_pd(to + 4, _mm256_add_pd(_mm256_loadu_pd(to + 4), second));
}

// Eight rows of one panel over n elements of k. n_inputs is a constant where this is called.
INLINE void half_panel(const int8_t *w, const int16_t *x, size_t n_inputs, size_t n,
                       struct sums *sums, size_t row) {
    __m256i sum[MAX_INPUTS][2];
    UNROLL for (size_t t = 0; t < n_inputs; t++) sum[t][0] = sum[t][1] = _mm256_setzero_si256();
    for (size_t i = 0; i < n; i += 4, w += STEP) {
        __m256i low = widen(w), high = widen(w + STEP / 4);
        UNROLL for (size_t t = 0; t < n_inputs; t++) {
            __m256i token = four(x + t * K_BLOCK + i);
            sum[t][0] = _mm256_add_epi32(sum[t][0], _mm256_madd_epi16(token, low));
            sum[t][1] = _mm256_add_epi32(sum[t][1], _mm256_madd_epi16(token, high));
        }
    }
    UNROLL for (size_t t = 0; t < n_inputs; t++) add_rows(sum[t][0], sum[t][1], sums->of[t] + row);
}

// Whole numbers of which ST_TERM_STEPS times the first plus the second is the sum.
INLINE void take_apart(const double *sums, size_t n, int32_t *first, int32_t *second) {
    const __m256d steps = _mm256_set1_pd(ST_TERM_STEPS), part = _mm256_set1_pd(1 / ST_TERM_STEPS);
    for (size_t i = 0; i < n; i += 4) {
        __m256d sum = _mm256_loadu_pd(sums + i);
        __m256d whole = _mm256_round_pd(_mm256_mul_pd(sum, part), _MM_FROUND_TO_NEAREST_INT);
        __m256d left = _mm256_sub_pd(sum, _mm256_mul_pd(whole, steps));
        _mm_storeu_si128((void *)(first + i), _mm256_cvtpd_epi32(whole));
        _mm_storeu_si128((void *)(second + i), _mm256_cvtpd_epi32(left));
    }
}

INLINE void inputs(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                   size_t n_inputs, size_t k, int32_t *sums, size_t sum_row) {
    int16_t combined[MAX_INPUTS * K_BLOCK];
    struct sums all;
    memset(&all, 0, sizeof all);
    for (size_t k0 = 0; k0 < k; k0 += K_BLOCK) {
        size_t n = st_min(K_BLOCK, k - k0);
        for (size_t t = 0; t < n_inputs; t++)
            combine(x + 2 * t * x_row + k0, x + (2 * t + 1) * x_row + k0, n,
                    combined + t * K_BLOCK);
        for (size_t p = 0; p < n_panels; p++)
            for (size_t half = 0; half < 2; half++)
                half_panel(w + (p * k + k0) * ST_INT8_PANEL + half * STEP / 2, combined, n_inputs,
                           n, &all, p * ST_INT8_PANEL + half * HALF);
    }
    for (size_t t = 0; t < n_inputs; t++)
        take_apart(all.of[t], n_panels * ST_INT8_PANEL, sums + 2 * t * sum_row,
                   sums + (2 * t + 1) * sum_row);
}

#define INPUTS(n)                                                                                  \
    case n:                                                                                        \
        inputs(w, n_panels, x, x_row, n, k, sums, sum_row);                                        \
        break;

void st_int8_two_avx2(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                      size_t n_rows, size_t k, int32_t *sums, size_t sum_row) {
    switch (n_rows / 2) {
        INPUTS(1)
        INPUTS(2)
        INPUTS(3)
        INPUTS(4)
        INPUTS(5)
        INPUTS(6)
    }
}

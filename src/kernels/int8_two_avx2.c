// SPDX-License-Identifier: Apache-2.0
// Two-term INT8 as one number: 254 q + rest fits 16 bits, so vpmaddwd multiplies both terms at
// once, in half the instructions of two products. Sums of a block of k fit 32 bits, those of blocks
// are exact as doubles. Zero is 0 here, so row_sums are of no use.
//
// 8 rows by 6 inputs: 12 registers of sums, 2 of weights, an input and a product. 16 rows by up to
// 2 inputs.
#include "kernels/elementwise.h"
#include "kernels/int8_tiles.h"
#include "kernels/prefetch.h"

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

enum {
    STEP = 4 * ST_INT8_PANEL,    // bytes of a panel per 4 elements of k
    QUARTER = ST_INT8_PANEL / 4, // rows of a register
    MAX_INPUTS = 6,
    FEW_INPUTS = 2,
    MAX_ROWS = 4 * ST_INT8_PANEL,
    K_BLOCK = 512, // two lanes of 128 products of pairs, of at most 2 x 32,385 x 127 each
};

INLINE __m256i widen(const void *p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(p));
}

// to[i] = 254 q + rest of n elements, a multiple of 64: the unsigned factors of vpmaddubsw are 254
// and 1.
INLINE void combine(const uint8_t *q, const uint8_t *rest, size_t n, int16_t *to) {
    const __m256i factors = _mm256_set1_epi16(1 << 8 | (int)ST_TERM_STEPS);
    for (size_t i = 0; i < n; i += 32) {
        // The quarters' order is that which unpacking undoes.
        __m256i first = _mm256_permute4x64_epi64(_mm256_loadu_si256((const void *)(q + i)), 0xd8);
        __m256i second =
            _mm256_permute4x64_epi64(_mm256_loadu_si256((const void *)(rest + i)), 0xd8);
        __m256i low = _mm256_unpacklo_epi8(first, second);
        __m256i high = _mm256_unpackhi_epi8(first, second);
        _mm256_storeu_si256((void *)(to + i), _mm256_maddubs_epi16(factors, low));
        _mm256_storeu_si256((void *)(to + i + 16), _mm256_maddubs_epi16(factors, high));
    }
}

INLINE __m256i four(const int16_t *x) {
    int64_t v;
    memcpy(&v, x, sizeof v);
    return _mm256_set1_epi64x(v);
}

// Where a block's sums go: to those before it, or in their place; behind the last block as floats.
struct place {
    double *wide;
    float *sums;
    bool first, last;
};

// Eight sums. The registers' rows are 0, 0, 1, 1, 2, 2, 3, 3 and so on.
INLINE void add_rows(__m256i low, __m256i high, const struct place *to, size_t at, size_t sums_at) {
    __m256i rows = _mm256_permute4x64_epi64(_mm256_hadd_epi32(low, high), 0xd8);
    __m256d first = _mm256_cvtepi32_pd(_mm256_castsi256_si128(rows));
    __m256d second = _mm256_cvtepi32_pd(_mm256_extracti128_si256(rows, 1));
    if (!to->first) {
        first = _mm256_add_pd(_mm256_loadu_pd(to->wide + at), first);
        second = _mm256_add_pd(_mm256_loadu_pd(to->wide + at + 4), second);
    }
    if (to->last) {
        _mm_storeu_ps(to->sums + sums_at, _mm256_cvtpd_ps(first));
        _mm_storeu_ps(to->sums + sums_at + 4, _mm256_cvtpd_ps(second));
    } else {
        _mm256_storeu_pd(to->wide + at, first);
        _mm256_storeu_pd(to->wide + at + 4, second);
    }
}

// In place, the product in a register of its own: GCC 12 moves and spills sums otherwise.
INLINE void add_product(__m256i *sum, __m256i input, __m256i weights) {
    __m256i product;
    __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
            : "+x"(*sum), "=&x"(product)
            : "x"(input), "x"(weights));
}

// Four elements of k of n_quarters quarters of a panel. The counts are constants where this is
// called.
INLINE void products(const int8_t *w, const int16_t *x, size_t n_inputs, size_t n_quarters,
                     __m256i sum[][4]) {
    __m256i weights[4];
    UNROLL for (size_t q = 0; q < n_quarters; q++) weights[q] = widen(w + q * STEP / 4);
    if (n_inputs < MAX_INPUTS) st_prefetch(w, STEP);
    UNROLL for (size_t t = 0; t < n_inputs; t++) {
        __m256i input = four(x + t * K_BLOCK);
        UNROLL for (size_t q = 0; q < n_quarters; q++) add_product(&sum[t][q], input, weights[q]);
    }
}

// The same quarters over n elements of k, a multiple of 64.
INLINE void quarters(const int8_t *w, const int16_t *x, size_t n_inputs, size_t n_quarters,
                     size_t n, const struct place *to, size_t row, size_t sum_row) {
    __m256i sum[MAX_INPUTS][4];
    UNROLL for (size_t t = 0; t < n_inputs; t++) UNROLL for (size_t q = 0; q < n_quarters; q++)
        sum[t][q] = _mm256_setzero_si256();
    for (size_t i = 0; i < n; i += 32)
        UNROLL for (size_t j = i; j < i + 32; j += 4, w += STEP)
            products(w, x + j, n_inputs, n_quarters, sum);
    UNROLL for (size_t t = 0; t < n_inputs; t++) UNROLL for (size_t q = 0; q < n_quarters; q += 2)
        add_rows(sum[t][q], sum[t][q + 1], to, t * MAX_ROWS + row + q * QUARTER,
                 t * sum_row + row + q * QUARTER);
}

INLINE void inputs(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                   size_t n_inputs, size_t k, float *sums, size_t sum_row) {
    const size_t at_once = n_inputs <= FEW_INPUTS ? 4 : 2;
    int16_t combined[MAX_INPUTS * K_BLOCK];
    double wide[MAX_INPUTS * MAX_ROWS];
    for (size_t k0 = 0; k0 < k; k0 += K_BLOCK) {
        size_t n = st_min(K_BLOCK, k - k0);
        const struct place to = {wide, sums, k0 == 0, k0 + n == k};
        for (size_t t = 0; t < n_inputs; t++)
            combine(x + 2 * t * x_row + k0, x + (2 * t + 1) * x_row + k0, n,
                    combined + t * K_BLOCK);
        for (size_t p = 0; p < n_panels; p++)
            for (size_t q = 0; q < 4; q += at_once)
                quarters(w + (p * k + k0) * ST_INT8_PANEL + q * STEP / 4, combined, n_inputs,
                         at_once, n, &to, p * ST_INT8_PANEL + q * QUARTER, sum_row);
    }
}

#define INPUTS(n)                                                                                  \
    case n:                                                                                        \
        inputs(w, n_panels, x, x_row, n, k, sums, sum_row);                                        \
        break;

void st_int8_two_avx2(const int8_t *w, const int32_t *row_sums, size_t n_panels, const uint8_t *x,
                      size_t x_row, size_t n_inputs, size_t k, float *sums, size_t sum_row) {
    (void)row_sums;
    switch (n_inputs) {
        INPUTS(1)
        INPUTS(2)
        INPUTS(3)
        INPUTS(4)
        INPUTS(5)
        INPUTS(6)
    }
}

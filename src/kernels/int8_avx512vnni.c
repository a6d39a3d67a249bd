// SPDX-License-Identifier: Apache-2.0
// 64 rows by 6 tokens, or by both terms of 3: 24 registers of sums, 4 of weights, one of a token's
// 4 elements.
#include "kernels/elementwise.h"
#include "kernels/int8_tiles.h"
#include "kernels/prefetch.h"

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

enum {
    STEP = 4 * ST_INT8_PANEL, // bytes of a panel per 4 elements of k
    ROWS = 6,
    PANELS = 4,
    ZERO = 128,
};

INLINE __m512i four(const uint8_t *x) {
    int32_t v;
    memcpy(&v, x, sizeof v);
    return _mm512_set1_epi32(v);
}

// In place where GCC 12 copies sums otherwise, and spills them.
INLINE void add_product(__m512i *sum, __m512i row, __m512i weights, bool in_place) {
    if (in_place)
        __asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(row), "v"(weights));
    else
        *sum = _mm512_dpbusd_epi32(*sum, row, weights);
}

// Added to the sums. n_panels, n_rows and in_place are constants where this is called.
INLINE void add_products(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                         size_t n_rows, size_t k, bool in_place, __m512i sum[ROWS][PANELS]) {
    const size_t panel_bytes = k * ST_INT8_PANEL;
    for (size_t i = 0; i < k; i += 4) {
        const int8_t *ahead = w + st_int8_ahead(i * ST_INT8_PANEL, panel_bytes, n_panels);
        __m512i v[PANELS];
        UNROLL for (size_t p = 0; p < n_panels; p++) {
            st_prefetch_soon(ahead + p * panel_bytes, STEP);
            v[p] = _mm512_loadu_si512(w + p * panel_bytes + i * ST_INT8_PANEL);
        }
        UNROLL for (size_t t = 0; t < n_rows; t++) {
            __m512i row = four(x + t * x_row + i);
            UNROLL for (size_t p = 0; p < n_panels; p++)
                add_product(&sum[t][p], row, v[p], in_place);
        }
    }
}

INLINE void tile(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row, size_t n_rows,
                 size_t k, int32_t *sums, size_t sum_row) {
    __m512i sum[ROWS][PANELS];
    UNROLL for (size_t t = 0; t < n_rows; t++) UNROLL for (size_t p = 0; p < n_panels; p++)
        sum[t][p] = _mm512_setzero_si512();
    add_products(w, n_panels, x, x_row, n_rows, k, false, sum);
    UNROLL for (size_t t = 0; t < n_rows; t++) UNROLL for (size_t p = 0; p < n_panels; p++)
        _mm512_storeu_si512(sums + t * sum_row + p * ST_INT8_PANEL, sum[t][p]);
}

#define OF_ROWS(n)                                                                                 \
    case n:                                                                                        \
        tile(w, n_panels, x, x_row, n, k, sums, sum_row);                                          \
        break;

INLINE void rows(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row, size_t n_rows,
                 size_t k, int32_t *sums, size_t sum_row) {
    switch (n_rows) {
        OF_ROWS(1)
        OF_ROWS(2)
        OF_ROWS(3)
        OF_ROWS(4)
        OF_ROWS(5)
        OF_ROWS(6)
    }
}

void st_int8_tile_avx512vnni(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                             size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    if (n_panels == 4)
        rows(w, 4, x, x_row, n_tokens, k, sums, sum_row);
    else if (n_panels == 3)
        rows(w, 3, x, x_row, n_tokens, k, sums, sum_row);
    else if (n_panels == 2)
        rows(w, 2, x, x_row, n_tokens, k, sums, sum_row);
    else
        rows(w, 1, x, x_row, n_tokens, k, sums, sum_row);
}

// ---- Both terms

INLINE __m512d wide_join(__m256i first, __m256i second) {
    return _mm512_fmadd_pd(_mm512_cvtepi32_pd(first), _mm512_set1_pd((double)ST_TERM_STEPS),
                           _mm512_cvtepi32_pd(second));
}
// ST_TERM_STEPS * first + second, rounded once.
INLINE __m512 join(__m512i first, __m512i second, bool few) {
    if (few)
        return _mm512_fmadd_ps(_mm512_cvtepi32_ps(first), _mm512_set1_ps(ST_TERM_STEPS),
                               _mm512_cvtepi32_ps(second));
    __m512d low = wide_join(_mm512_castsi512_si256(first), _mm512_castsi512_si256(second));
    __m512d high =
        wide_join(_mm512_extracti64x4_epi64(first, 1), _mm512_extracti64x4_epi64(second, 1));
    __m512d of_low = _mm512_castpd256_pd512(_mm256_castps_pd(_mm512_cvtpd_ps(low)));
    return _mm512_castpd_ps(_mm512_insertf64x4(of_low, _mm256_castps_pd(_mm512_cvtpd_ps(high)), 1));
}

INLINE void two(const int8_t *w, const int32_t *row_sums, size_t n_panels, const uint8_t *x,
                size_t x_row, size_t n_inputs, size_t k, float *sums, size_t sum_row) {
    const bool few = k <= ST_FLOAT_PRODUCTS;
    __m512i sum[ROWS][PANELS];
    UNROLL for (size_t t = 0; t < 2 * n_inputs; t++) UNROLL for (size_t p = 0; p < n_panels; p++)
        sum[t][p] = _mm512_setzero_si512();
    add_products(w, n_panels, x, x_row, 2 * n_inputs, k, true, sum);
    UNROLL for (size_t p = 0; p < n_panels; p++) {
        __m512i of_zero = _mm512_mullo_epi32(_mm512_loadu_si512(row_sums + p * ST_INT8_PANEL),
                                             _mm512_set1_epi32(ZERO));
        UNROLL for (size_t t = 0; t < n_inputs; t++)
            _mm512_storeu_ps(sums + t * sum_row + p * ST_INT8_PANEL,
                             join(_mm512_sub_epi32(sum[2 * t][p], of_zero),
                                  _mm512_sub_epi32(sum[2 * t + 1][p], of_zero), few));
    }
}

#define OF_INPUTS(n)                                                                               \
    case n:                                                                                        \
        two(w, row_sums, n_panels, x, x_row, n, k, sums, sum_row);                                 \
        break;

INLINE void inputs(const int8_t *w, const int32_t *row_sums, size_t n_panels, const uint8_t *x,
                   size_t x_row, size_t n_inputs, size_t k, float *sums, size_t sum_row) {
    switch (n_inputs) {
        OF_INPUTS(1)
        OF_INPUTS(2)
        OF_INPUTS(3)
    }
}

void st_int8_two_avx512vnni(const int8_t *w, const int32_t *row_sums, size_t n_panels,
                            const uint8_t *x, size_t x_row, size_t n_inputs, size_t k, float *sums,
                            size_t sum_row) {
    if (n_panels == 4)
        inputs(w, row_sums, 4, x, x_row, n_inputs, k, sums, sum_row);
    else if (n_panels == 3)
        inputs(w, row_sums, 3, x, x_row, n_inputs, k, sums, sum_row);
    else if (n_panels == 2)
        inputs(w, row_sums, 2, x, x_row, n_inputs, k, sums, sum_row);
    else
        inputs(w, row_sums, 1, x, x_row, n_inputs, k, sums, sum_row);
}

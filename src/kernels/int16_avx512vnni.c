// SPDX-License-Identifier: Apache-2.0
// AVX-512 with VNNI: vpdpwssd multiplies and adds twice as many pairs at a time as there are floats
// in a vector.
#include "kernels/int16_rows.h"

#include <immintrin.h>

#define UNROLL _Pragma("GCC unroll 8")
#define INLINE static inline __attribute__((always_inline))

enum { M = 8, VECTORS = 3, LANES = 16 };

// In place: GCC 12 copies sums otherwise, and spills them.
INLINE void add_products(__m512i *sum, __m512i w, __m512i x) {
    __asm__("vpdpwssd %2, %1, %0" : "+v"(*sum) : "v"(w), "v"(x));
}

INLINE void tile(size_t n_vectors, size_t k, const uint32_t *a, size_t a_row, const float *a_scale,
                 const uint32_t *b, const float *b_scale, float *c, size_t c_row) {
    __m512i sum[M][VECTORS];
    UNROLL for (size_t m = 0; m < M; m++) UNROLL for (size_t v = 0; v < n_vectors; v++) sum[m][v] =
        _mm512_setzero_si512();
    UNROLL for (size_t m = 0; m < M; m++) _mm_prefetch((const char *)(c + m * c_row), _MM_HINT_T0);
    for (size_t i = 0; i < k; i++, a++, b += n_vectors * LANES) {
        __m512i x[VECTORS];
        UNROLL for (size_t v = 0; v < n_vectors; v++) x[v] = _mm512_loadu_si512(b + v * LANES);
        UNROLL for (size_t m = 0; m < M; m++) {
            __m512i w = _mm512_set1_epi32((int32_t)a[m * a_row]);
            UNROLL for (size_t v = 0; v < n_vectors; v++) add_products(&sum[m][v], w, x[v]);
        }
    }
    UNROLL for (size_t m = 0; m < M; m++) UNROLL for (size_t v = 0; v < n_vectors; v++) {
        float *out = c + m * c_row + v * LANES;
        __m512 scale =
            _mm512_mul_ps(_mm512_set1_ps(a_scale[m]), _mm512_loadu_ps(b_scale + v * LANES));
        _mm512_storeu_ps(
            out, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[m][v]), scale, _mm512_loadu_ps(out)));
    }
}

void st_int16_tile_avx512vnni_1(size_t k, const uint32_t *a, size_t a_row, const float *a_scale,
                                const uint32_t *b, const float *b_scale, float *c, size_t c_row) {
    tile(1, k, a, a_row, a_scale, b, b_scale, c, c_row);
}

void st_int16_tile_avx512vnni_2(size_t k, const uint32_t *a, size_t a_row, const float *a_scale,
                                const uint32_t *b, const float *b_scale, float *c, size_t c_row) {
    tile(2, k, a, a_row, a_scale, b, b_scale, c, c_row);
}

void st_int16_tile_avx512vnni_3(size_t k, const uint32_t *a, size_t a_row, const float *a_scale,
                                const uint32_t *b, const float *b_scale, float *c, size_t c_row) {
    tile(3, k, a, a_row, a_scale, b, b_scale, c, c_row);
}

// SPDX-License-Identifier: Apache-2.0
// AVX-512 with VNNI: vpdpwssd multiplies and adds twice as many pairs at a time as there are floats
// in a vector.
#include "kernels/int16_rows.h"

#include <immintrin.h>

enum { M = 8, VECTORS = 3 };

#define vi_load   _mm512_loadu_si512
#define vi_zero   _mm512_setzero_si512
#define vi_set1   _mm512_set1_epi32
#define to_floats _mm512_cvtepi32_ps

// In place: GCC 12 copies sums otherwise, and spills them.
static inline void add_products(__m512i *sum, __m512i w, __m512i x) {
    __asm__("vpdpwssd %2, %1, %0" : "+v"(*sum) : "v"(w), "v"(x));
}

#include "kernels/int16_body.h"

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

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

TILE(st_int16_tile_avx512vnni_1, 1)
TILE(st_int16_tile_avx512vnni_2, 2)
TILE(st_int16_tile_avx512vnni_3, 3)

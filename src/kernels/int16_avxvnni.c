// SPDX-License-Identifier: Apache-2.0
// AVX-VNNI: vpdpwssd in registers of 256 bits.
#include "kernels/int16_rows.h"
#include "kernels/vnni_256.h"

enum { M = 6, VECTORS = 2 };

static inline __m256i vi_load(const uint32_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

#define vi_zero      _mm256_setzero_si256
#define vi_set1      _mm256_set1_epi32
#define to_floats    _mm256_cvtepi32_ps
#define add_products st_add_words

#include "kernels/int16_body.h"

TILE(st_int16_tile_avxvnni_1, 1)
TILE(st_int16_tile_avxvnni_2, 2)

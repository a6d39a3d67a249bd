// SPDX-License-Identifier: Apache-2.0
// Products of AVX-VNNI, added in place: GCC 12 copies sums otherwise, and spills them.
#ifndef ST_KERNELS_VNNI_256_H
#define ST_KERNELS_VNNI_256_H

#include <immintrin.h>

// For each 32 bits: four products of x, whose bytes are unsigned, and w, whose bytes are signed.
static inline void st_add_bytes(__m256i *sum, __m256i x, __m256i w) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(*sum) : "x"(x), "x"(w));
}

// For each 32 bits: two products of 16-bit numbers.
static inline void st_add_words(__m256i *sum, __m256i a, __m256i b) {
    __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(*sum) : "x"(a), "x"(b));
}

#endif

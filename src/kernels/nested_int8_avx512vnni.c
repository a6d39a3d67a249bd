// SPDX-License-Identifier: Apache-2.0
#include "kernels/nested_int8_512.h"

#define PRODUCT st_nested_int8_product_avx512vnni

enum { TOGETHER = 2 };

typedef __m512i vi;

static inline vb vb_x(const uint8_t *p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)p));
}
static inline vi vi_zero(void) {
    return _mm512_setzero_si512();
}
static inline vi vi_dot(vi sum, vb w, vb x) {
    return _mm512_dpbusd_epi32(sum, x, w);
}
static inline void vi_rows(vi v, int32_t rows[LANES]) {
    v = _mm512_add_epi32(v, _mm512_shuffle_epi32(v, 0xb1));
    v = _mm512_add_epi32(v, _mm512_shuffle_epi32(v, 0x4e));
    const __m512i first = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    _mm_storeu_si128((void *)rows, _mm512_castsi512_si128(_mm512_permutexvar_epi32(first, v)));
}

#include "kernels/nested_int8_product.h"

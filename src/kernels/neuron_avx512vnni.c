// SPDX-License-Identifier: Apache-2.0
#include "kernels/neuron_rows.h"

#include <immintrin.h>

#define INLINE       static inline __attribute__((always_inline))
#define UNROLL       _Pragma("GCC unroll 8")
#define NEURON(name) st_neuron_##name##_avx512vnni

typedef __m512i vb;

#define vb_zero    _mm512_setzero_si512
#define vb_set1    _mm512_set1_epi32
#define vb_sum     _mm512_reduce_add_epi32
#define vb_lo_8    _mm512_unpacklo_epi8
#define vb_hi_8    _mm512_unpackhi_epi8
#define vb_lo_16   _mm512_unpacklo_epi16
#define vb_hi_16   _mm512_unpackhi_epi16
#define vb_flip(v) _mm512_xor_si512(v, _mm512_set1_epi8(-128))

INLINE vb load(const void *p) {
    return _mm512_loadu_si512(p);
}

INLINE void store(void *p, vb v) {
    _mm512_storeu_si512(p, v);
}

INLINE void vb_add_products(vb *sum, vb u, vb s) {
    *sum = _mm512_dpbusd_epi32(*sum, u, s);
}

INLINE vb weights(const uint8_t *row, enum st_neuron_code code, size_t k, size_t i) {
    if (code == ST_NEURON_INT8) return load(row + i);
    const __m512i halves = _mm512_set_epi64(4, 4, 4, 4, 0, 0, 0, 0);
    const uint8_t *scale = row + k / 2 + i / ST_NEURON_K;
    const int8_t *levels = st_neuron_levels[*scale & (ST_NEURON_SCALES - 1)];
    __m512i codes = _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)(row + i / 2)));
    codes = _mm512_and_si512(_mm512_srlv_epi64(codes, halves), _mm512_set1_epi8(15));
    __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)levels));
    return _mm512_shuffle_epi8(table, codes);
}

#include "kernels/neuron_vnni.h"

// SPDX-License-Identifier: Apache-2.0
#include "kernels/neuron_rows.h"
#include "kernels/vnni_256.h"

#define INLINE       static inline __attribute__((always_inline))
#define UNROLL       _Pragma("GCC unroll 8")
#define NEURON(name) st_neuron_##name##_avxvnni

typedef __m256i vb;

#define vb_zero         _mm256_setzero_si256
#define vb_set1         _mm256_set1_epi32
#define vb_lo_8         _mm256_unpacklo_epi8
#define vb_hi_8         _mm256_unpackhi_epi8
#define vb_lo_16        _mm256_unpacklo_epi16
#define vb_hi_16        _mm256_unpackhi_epi16
#define vb_flip(v)      _mm256_xor_si256(v, _mm256_set1_epi8(-128))
#define vb_add_products st_add_bytes

INLINE vb load(const void *p) {
    return _mm256_loadu_si256(p);
}

INLINE void store(void *p, vb v) {
    _mm256_storeu_si256(p, v);
}

INLINE int32_t vb_sum(vb v) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return _mm_cvtsi128_si32(s);
}

INLINE vb weights(const uint8_t *row, enum st_neuron_code code, size_t k, size_t i) {
    if (code == ST_NEURON_INT8) return load(row + i);
    size_t group = i / ST_NEURON_K;
    const int8_t *levels = st_neuron_levels[row[k / 2 + group] & (ST_NEURON_SCALES - 1)];
    vb codes = load(row + group * ST_NEURON_K / 2);
    if (i % ST_NEURON_K) codes = _mm256_srli_epi16(codes, 4);
    vb table = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)levels));
    return _mm256_shuffle_epi8(table, _mm256_and_si256(codes, _mm256_set1_epi8(15)));
}

#include "kernels/neuron_vnni.h"

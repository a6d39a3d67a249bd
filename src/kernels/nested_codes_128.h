// SPDX-License-Identifier: Apache-2.0
// One row at once in 128 bits, for nested_codes.h.
#ifndef ST_KERNELS_NESTED_CODES_128_H
#define ST_KERNELS_NESTED_CODES_128_H

#include <immintrin.h>
#include <stdint.h>

enum { LANES = 1 };

typedef __m128i vb;

static inline vb vb_load(const void *p) {
    return _mm_loadu_si128(p);
}
static inline vb vb_and(vb v, uint8_t mask) {
    return _mm_and_si128(v, _mm_set1_epi8((char)mask));
}
static inline vb vb_select(uint8_t mask, vb a, vb b) {
    const vb m = _mm_set1_epi8((char)mask);
    return _mm_or_si128(_mm_and_si128(m, a), _mm_andnot_si128(m, b));
}
static inline vb vb_double(vb v) {
    return _mm_add_epi8(v, v);
}
static inline vb vb_append(vb a, vb b) {
    return _mm_or_si128(vb_double(a), vb_and(b, 1));
}
#define vb_shl(v, n) _mm_slli_epi16(v, (int)(n))
#define vb_shr(v, n) _mm_srli_epi16(v, (int)(n))
static inline vb vb_append_low(vb a, vb b) {
    return _mm_or_si128(vb_and(vb_double(a), 30), vb_and(b, 1));
}
static inline vb vb_append_high(vb a, vb b) {
    return _mm_or_si128(vb_and(vb_shr(a, 3), 30), vb_and(b, 1));
}

#endif

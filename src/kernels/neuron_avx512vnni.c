// SPDX-License-Identifier: Apache-2.0
// Rows pass by at memory speed; of columns, four at a time are interleaved byte by byte, so that
// one instruction multiplies and adds all four.
#include "kernels/neuron_rows.h"

#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

INLINE __m512i load(const void *p) {
    return _mm512_loadu_si512(p);
}

// ST_NEURON_K weights from i on, as INT8.
INLINE __m512i weights(const uint8_t *row, enum st_neuron_code code, size_t k, size_t i) {
    if (code == ST_NEURON_INT8) return load(row + i);
    const __m512i halves = _mm512_set_epi64(4, 4, 4, 4, 0, 0, 0, 0);
    const uint8_t *scale = row + k / 2 + i / ST_NEURON_K;
    const int8_t *levels = st_neuron_levels[*scale & (ST_NEURON_SCALES - 1)];
    __m512i codes = _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)(row + i / 2)));
    codes = _mm512_and_si512(_mm512_srlv_epi64(codes, halves), _mm512_set1_epi8(15));
    __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)levels));
    return _mm512_shuffle_epi8(table, codes);
}

// code, n_rows and n_tokens are constants where this is called.
INLINE void dot(const uint8_t *rows, enum st_neuron_code code, size_t n_rows, size_t k,
                const uint8_t *x, size_t x_row, size_t n_tokens, int32_t *sums) {
    __m512i sum[ST_NEURON_TOKENS][2];
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t r = 0; r < n_rows; r++)
        sum[t][r] = _mm512_setzero_si512();
    for (size_t i = 0; i < k; i += ST_NEURON_K) {
        __m512i w[2];
        UNROLL for (size_t r = 0; r < n_rows; r++) w[r] =
            weights(rows + r * st_neuron_row_bytes(k, code), code, k, i);
        UNROLL for (size_t t = 0; t < n_tokens; t++) {
            __m512i token = load(x + t * x_row + i);
            UNROLL for (size_t r = 0; r < n_rows; r++) sum[t][r] =
                _mm512_dpbusd_epi32(sum[t][r], token, w[r]);
        }
    }
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t r = 0; r < n_rows; r++)
        sums[t * n_rows + r] = _mm512_reduce_add_epi32(sum[t][r]);
}

#define TOKENS(call, ...)                                                                          \
    if (n_tokens == 1)                                                                             \
        call(__VA_ARGS__, 1);                                                                      \
    else if (n_tokens == 2)                                                                        \
        call(__VA_ARGS__, 2);                                                                      \
    else if (n_tokens == 3)                                                                        \
        call(__VA_ARGS__, 3);                                                                      \
    else                                                                                           \
        call(__VA_ARGS__, 4);

#define DOT(code, n_rows, n) dot(rows, code, n_rows, k, x, x_row, n, sums)
#define ADD(code, n)         add(columns, code, q, n, k, sums, sum_row)

void st_neuron_dot_avx512vnni(const uint8_t *rows, size_t n_rows, size_t k, const uint8_t *x,
                              size_t x_row, size_t n_tokens, int32_t *sums) {
    if (n_rows == 1) {
        TOKENS(DOT, ST_NEURON_INT8, 1)
    } else {
        TOKENS(DOT, ST_NEURON_INT8, 2)
    }
}

void st_neuron_dot_levels_avx512vnni(const uint8_t *rows, size_t n_rows, size_t k, const uint8_t *x,
                                     size_t x_row, size_t n_tokens, int32_t *sums) {
    if (n_rows == 1) {
        TOKENS(DOT, ST_NEURON_LEVELS, 1)
    } else {
        TOKENS(DOT, ST_NEURON_LEVELS, 2)
    }
}

// Columns hold 128 more.
INLINE __m512i column(const uint8_t *column, enum st_neuron_code code, size_t k, size_t i) {
    __m512i w = weights(column, code, k, i);
    return code == ST_NEURON_INT8 ? w : _mm512_xor_si512(w, _mm512_set1_epi8(-128));
}

INLINE void add(const uint8_t *const *columns, enum st_neuron_code code, const int8_t *q,
                size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    __m512i four[ST_NEURON_TOKENS];
    UNROLL for (size_t t = 0; t < n_tokens; t++) {
        int32_t v;
        memcpy(&v, q + t * ST_NEURON_GROUP, sizeof v);
        four[t] = _mm512_set1_epi32(v);
    }
    for (size_t i = 0; i < k; i += ST_NEURON_K) {
        __m512i a = column(columns[0], code, k, i), b = column(columns[1], code, k, i);
        __m512i c = column(columns[2], code, k, i), d = column(columns[3], code, k, i);
        __m512i ab0 = _mm512_unpacklo_epi8(a, b), ab1 = _mm512_unpackhi_epi8(a, b);
        __m512i cd0 = _mm512_unpacklo_epi8(c, d), cd1 = _mm512_unpackhi_epi8(c, d);
        __m512i w[4] = {_mm512_unpacklo_epi16(ab0, cd0), _mm512_unpackhi_epi16(ab0, cd0),
                        _mm512_unpacklo_epi16(ab1, cd1), _mm512_unpackhi_epi16(ab1, cd1)};
        UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t z = 0; z < 4; z++) {
            int32_t *to = sums + t * sum_row + i + 16 * z;
            _mm512_storeu_si512(to, _mm512_dpbusd_epi32(load(to), w[z], four[t]));
        }
    }
}

void st_neuron_add_avx512vnni(const uint8_t *const *columns, const int8_t *q, size_t n_tokens,
                              size_t k, int32_t *sums, size_t sum_row) {
    TOKENS(ADD, ST_NEURON_INT8)
}

void st_neuron_add_levels_avx512vnni(const uint8_t *const *columns, const int8_t *q,
                                     size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    TOKENS(ADD, ST_NEURON_LEVELS)
}

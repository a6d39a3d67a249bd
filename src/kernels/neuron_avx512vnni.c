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

// n_rows and n_tokens are constants where this is called.
INLINE void dot(const int8_t *rows, size_t n_rows, size_t k, const uint8_t *x, size_t x_row,
                size_t n_tokens, int32_t *sums) {
    __m512i sum[ST_NEURON_TOKENS][2];
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t r = 0; r < n_rows; r++)
        sum[t][r] = _mm512_setzero_si512();
    for (size_t i = 0; i < k; i += ST_NEURON_K) {
        __m512i w[2];
        UNROLL for (size_t r = 0; r < n_rows; r++) w[r] = load(rows + r * k + i);
        UNROLL for (size_t t = 0; t < n_tokens; t++) {
            __m512i token = load(x + t * x_row + i);
            UNROLL for (size_t r = 0; r < n_rows; r++) sum[t][r] =
                _mm512_dpbusd_epi32(sum[t][r], token, w[r]);
        }
    }
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t r = 0; r < n_rows; r++)
        sums[t * n_rows + r] = _mm512_reduce_add_epi32(sum[t][r]);
}

#define ROWS(n)                                                                                    \
    if (n_tokens == 1)                                                                             \
        dot(rows, n, k, x, x_row, 1, sums);                                                        \
    else if (n_tokens == 2)                                                                        \
        dot(rows, n, k, x, x_row, 2, sums);                                                        \
    else if (n_tokens == 3)                                                                        \
        dot(rows, n, k, x, x_row, 3, sums);                                                        \
    else                                                                                           \
        dot(rows, n, k, x, x_row, 4, sums);

void st_neuron_dot_avx512vnni(const int8_t *rows, size_t n_rows, size_t k, const uint8_t *x,
                              size_t x_row, size_t n_tokens, int32_t *sums) {
    if (n_rows == 1) {
        ROWS(1)
    } else {
        ROWS(2)
    }
}

INLINE void add(const uint8_t *const *columns, const int8_t *q, size_t n_tokens, size_t k,
                int32_t *sums, size_t sum_row) {
    __m512i four[ST_NEURON_TOKENS];
    UNROLL for (size_t t = 0; t < n_tokens; t++) {
        int32_t v;
        memcpy(&v, q + t * ST_NEURON_GROUP, sizeof v);
        four[t] = _mm512_set1_epi32(v);
    }
    for (size_t i = 0; i < k; i += ST_NEURON_K) {
        __m512i a = load(columns[0] + i), b = load(columns[1] + i);
        __m512i c = load(columns[2] + i), d = load(columns[3] + i);
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
    if (n_tokens == 1)
        add(columns, q, 1, k, sums, sum_row);
    else if (n_tokens == 2)
        add(columns, q, 2, k, sums, sum_row);
    else if (n_tokens == 3)
        add(columns, q, 3, k, sums, sum_row);
    else
        add(columns, q, 4, k, sums, sum_row);
}

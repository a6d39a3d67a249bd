// SPDX-License-Identifier: Apache-2.0
// 64 rows by 6 tokens: 24 registers of sums, 4 of weights, one of a token's 4 elements.
#include "kernels/prefetch.h"
#include "kernels/int8_tiles.h"

#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

enum { STEP = 4 * ST_INT8_PANEL }; // bytes of a panel per 4 elements of k

INLINE __m512i four(const uint8_t *x) {
    int32_t v;
    memcpy(&v, x, sizeof v);
    return _mm512_set1_epi32(v);
}

// n_panels and n_tokens are constants where this is called.
INLINE void tile(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row, size_t n_tokens,
                 size_t k, int32_t *sums, size_t sum_row) {
    __m512i sum[6][4];
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t p = 0; p < n_panels; p++)
        sum[t][p] = _mm512_setzero_si512();
    const size_t panel_bytes = k * ST_INT8_PANEL;
    for (size_t i = 0; i < k; i += 4) {
        const int8_t *ahead = w + st_int8_ahead(i * ST_INT8_PANEL, panel_bytes, n_panels);
        __m512i v[4];
        UNROLL for (size_t p = 0; p < n_panels; p++) {
            st_prefetch_soon(ahead + p * panel_bytes, STEP);
            v[p] = _mm512_loadu_si512(w + p * panel_bytes + i * ST_INT8_PANEL);
        }
        UNROLL for (size_t t = 0; t < n_tokens; t++) {
            __m512i token = four(x + t * x_row + i);
            UNROLL for (size_t p = 0; p < n_panels; p++) sum[t][p] =
                _mm512_dpbusd_epi32(sum[t][p], token, v[p]);
        }
    }
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t p = 0; p < n_panels; p++)
        _mm512_storeu_si512(sums + t * sum_row + p * ST_INT8_PANEL, sum[t][p]);
}

#define TOKENS(n)                                                                                  \
    case n:                                                                                        \
        tile(w, n_panels, x, x_row, n, k, sums, sum_row);                                          \
        break;

INLINE void tokens(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                   size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    switch (n_tokens) {
        TOKENS(1)
        TOKENS(2)
        TOKENS(3)
        TOKENS(4)
        TOKENS(5)
        TOKENS(6)
    }
}

void st_int8_tile_avx512vnni(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                             size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    if (n_panels == 4)
        tokens(w, 4, x, x_row, n_tokens, k, sums, sum_row);
    else if (n_panels == 3)
        tokens(w, 3, x, x_row, n_tokens, k, sums, sum_row);
    else if (n_panels == 2)
        tokens(w, 2, x, x_row, n_tokens, k, sums, sum_row);
    else
        tokens(w, 1, x, x_row, n_tokens, k, sums, sum_row);
}

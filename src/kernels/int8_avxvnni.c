// SPDX-License-Identifier: Apache-2.0
// 16 rows by 6 tokens: 12 registers of sums, 2 of weights, one of a token's 4 elements.
#include "kernels/int8_tiles.h"
#include "kernels/prefetch.h"
#include "kernels/vnni_256.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

enum {
    STEP = 4 * ST_INT8_PANEL, // bytes of a panel per 4 elements of k
    MAX_TOKENS = 6,
    FEW_TOKENS = 2, // most that meet two panels at once
};

INLINE __m256i load(const void *p) {
    return _mm256_loadu_si256(p);
}

INLINE __m256i four(const uint8_t *x) {
    int32_t v;
    memcpy(&v, x, sizeof v);
    return _mm256_set1_epi32(v);
}

// Four elements of k. n_tokens is a constant where this is called.
INLINE void products(const int8_t *w, const uint8_t *x, size_t x_row, size_t n_tokens,
                     __m256i sum[][2]) {
    __m256i low = load(w), high = load(w + STEP / 2);
    UNROLL for (size_t t = 0; t < n_tokens; t++) {
        __m256i token = four(x + t * x_row);
        st_add_bytes(&sum[t][0], token, low);
        st_add_bytes(&sum[t][1], token, high);
    }
}

INLINE void tile(const int8_t *w, const uint8_t *x, size_t x_row, size_t n_tokens, size_t k,
                 int32_t *sums, size_t sum_row) {
    __m256i sum[MAX_TOKENS][2];
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t h = 0; h < 2; h++) sum[t][h] =
        _mm256_setzero_si256();
    for (size_t i = 0; i < k; i += 4, w += STEP) {
        if (n_tokens < MAX_TOKENS) st_prefetch(w, STEP);
        products(w, x + i, x_row, n_tokens, sum);
    }
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t h = 0; h < 2; h++)
        _mm256_storeu_si256((void *)(sums + t * sum_row + 8 * h), sum[t][h]);
}

// Few tokens by two panels in turns: a core reads two streams faster than one.
INLINE void two_panels(const int8_t *w, const uint8_t *x, size_t x_row, size_t n_tokens, size_t k,
                       int32_t *sums, size_t sum_row) {
    const size_t panel_bytes = k * ST_INT8_PANEL;
    __m256i sum[2][FEW_TOKENS][2];
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t h = 0; h < 4; h++)
        sum[h / 2][t][h % 2] = _mm256_setzero_si256();
    for (size_t at = 0; at < panel_bytes; at += STEP, x += 4) {
        const int8_t *ahead = w + st_int8_ahead(at, panel_bytes, 2);
        UNROLL for (size_t p = 0; p < 2; p++) {
            st_prefetch_soon(ahead + p * panel_bytes, STEP);
            products(w + p * panel_bytes + at, x, x_row, n_tokens, sum[p]);
        }
    }
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t h = 0; h < 4; h++)
        _mm256_storeu_si256((void *)(sums + t * sum_row + 8 * h), sum[h / 2][t][h % 2]);
}

INLINE void tokens(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                   size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    size_t p = 0;
    for (; n_tokens <= FEW_TOKENS && p + 2 <= n_panels; p += 2)
        two_panels(w + p * k * ST_INT8_PANEL, x, x_row, n_tokens, k, sums + p * ST_INT8_PANEL,
                   sum_row);
    for (; p < n_panels; p++)
        tile(w + p * k * ST_INT8_PANEL, x, x_row, n_tokens, k, sums + p * ST_INT8_PANEL, sum_row);
}

#define TOKENS(n)                                                                                  \
    case n:                                                                                        \
        tokens(w, n_panels, x, x_row, n, k, sums, sum_row);                                        \
        break;

void st_int8_tile_avxvnni(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
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

// SPDX-License-Identifier: Apache-2.0
// vpmaddubsw wants one unsigned factor: the input's sign goes to the weight. |x| <= 127 keeps its
// pairwise 16-bit sums within 2 x 127 x 127, so that nothing saturates.
//
// 16 rows by 5 tokens: 10 registers of sums, 2 of weights, an element of the input and its
// magnitude, ones, and a product. Magnitudes are computed once for all panels of a call.
#include "kernels/int8_tiles.h"
#include "kernels/prefetch.h"

#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 5")

enum {
    STEP = 4 * ST_INT8_PANEL, // bytes of a panel per 4 elements of k
    MAX_TOKENS = 5,
    K_BLOCK = 2048, // elements of k whose magnitudes stay in the first-level cache
};

INLINE __m256i four(const uint8_t *x) {
    int32_t v;
    memcpy(&v, x, sizeof v);
    return _mm256_set1_epi32(v);
}

INLINE __m256i dot4(__m256i x, __m256i magnitude, __m256i w) {
    __m256i pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(w, x));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

// In place where registers are short: GCC 12 keeps a second copy of each sum otherwise, and spills
// them. Where they are not, it is that which would copy.
INLINE void add(__m256i *sum, __m256i x, size_t n_tokens) {
    if (n_tokens == MAX_TOKENS)
        __asm__("vpaddd %1, %0, %0" : "+x"(*sum) : "x"(x));
    else
        *sum = _mm256_add_epi32(*sum, x);
}

INLINE __m256i load(const void *p) {
    return _mm256_loadu_si256(p);
}

// Four elements of k. n_tokens is a constant where this is called.
INLINE void products(const int8_t *w, const uint8_t *x, size_t x_row, const uint8_t *magnitudes,
                     size_t n_tokens, __m256i sum[][2]) {
    __m256i low = load(w), high = load(w + STEP / 2);
    if (n_tokens < MAX_TOKENS) st_prefetch(w, STEP);
    UNROLL for (size_t t = 0; t < n_tokens; t++) {
        __m256i token = four(x + t * x_row), magnitude = four(magnitudes + t * K_BLOCK);
        add(&sum[t][0], dot4(token, magnitude, low), n_tokens);
        add(&sum[t][1], dot4(token, magnitude, high), n_tokens);
    }
}

// One panel. magnitudes: [n_tokens, K_BLOCK]. With `more`, adds to sums.
INLINE void tile(const int8_t *w, const uint8_t *x, size_t x_row, const uint8_t *magnitudes,
                 size_t n_tokens, size_t k, bool more, int32_t *sums, size_t sum_row) {
    __m256i sum[MAX_TOKENS][2];
    // The loop's own instructions are many beside those of few products. k is a multiple of 64.
    const size_t n_at_once = n_tokens < MAX_TOKENS ? 4 : 1;
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t h = 0; h < 2; h++) sum[t][h] =
        more ? load(sums + t * sum_row + 8 * h) : _mm256_setzero_si256();
    for (size_t i = 0; i < k; i += 4 * n_at_once)
        UNROLL for (size_t j = i; j < i + 4 * n_at_once; j += 4, w += STEP)
            products(w, x + j, x_row, magnitudes + j, n_tokens, sum);
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t h = 0; h < 2; h++)
        _mm256_storeu_si256((void *)(sums + t * sum_row + 8 * h), sum[t][h]);
}

INLINE void tokens(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                   size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    uint8_t magnitudes[MAX_TOKENS * K_BLOCK];
    for (size_t k0 = 0; k0 < k; k0 += K_BLOCK) {
        size_t n = st_min(K_BLOCK, k - k0);
        for (size_t t = 0; t < n_tokens; t++)
            for (size_t i = 0; i < n; i += sizeof(__m256i))
                _mm256_storeu_si256((void *)(magnitudes + t * K_BLOCK + i),
                                    _mm256_abs_epi8(load(x + t * x_row + k0 + i)));
        for (size_t p = 0; p < n_panels; p++)
            tile(w + (p * k + k0) * ST_INT8_PANEL, x + k0, x_row, magnitudes, n_tokens, n, k0 > 0,
                 sums + p * ST_INT8_PANEL, sum_row);
    }
}

#define TOKENS(n)                                                                                  \
    case n:                                                                                        \
        tokens(w, n_panels, x, x_row, n, k, sums, sum_row);                                        \
        break;

void st_int8_tile_avx2(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                       size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    switch (n_tokens) {
        TOKENS(1)
        TOKENS(2)
        TOKENS(3)
        TOKENS(4)
        TOKENS(5)
    }
}

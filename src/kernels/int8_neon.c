// SPDX-License-Identifier: Apache-2.0
// Armv8.0 has no dot products: two products of bytes fit 16 bits, whose pairs are then added to
// sums of 32. So three instructions make 16 products.
//
// 16 rows by 2 tokens: 16 registers of sums, each with two sums of two rows.
#include "kernels/int8_tiles.h"
#include "kernels/prefetch.h"

#include <arm_neon.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 4")

enum {
    STEP = 4 * ST_INT8_PANEL, // bytes of a panel per 4 elements of k
    MAX_TOKENS = 2,
};

// Four elements of k, four times.
INLINE int8x16_t four(const int8_t *x) {
    int32_t v;
    memcpy(&v, x, sizeof v);
    return vreinterpretq_s8_s32(vdupq_n_s32(v));
}

// Eight elements of k. n_tokens is a constant where this is called.
INLINE void products(const int8_t *w, const int8_t *x, size_t x_row, size_t n_tokens,
                     int32x4_t sum[][4][2]) {
    int8x16_t first[MAX_TOKENS], second[MAX_TOKENS];
    st_prefetch(w, 2 * STEP);
    UNROLL for (size_t t = 0; t < n_tokens; t++) {
        first[t] = four(x + t * x_row);
        second[t] = four(x + t * x_row + 4);
    }
    UNROLL for (size_t r = 0; r < 4; r++) {
        int8x16_t a = vld1q_s8(w + 16 * r), b = vld1q_s8(w + STEP + 16 * r);
        UNROLL for (size_t t = 0; t < n_tokens; t++) {
            int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(first[t]));
            int16x8_t high = vmull_high_s8(a, first[t]);
            low = vmlal_s8(low, vget_low_s8(b), vget_low_s8(second[t]));
            high = vmlal_high_s8(high, b, second[t]);
            sum[t][r][0] = vpadalq_s16(sum[t][r][0], low);
            sum[t][r][1] = vpadalq_s16(sum[t][r][1], high);
        }
    }
}

INLINE void tile(const int8_t *w, const int8_t *x, size_t x_row, size_t n_tokens, size_t k,
                 int32_t *sums, size_t sum_row) {
    int32x4_t sum[MAX_TOKENS][4][2];
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t r = 0; r < 4; r++)
        sum[t][r][0] = sum[t][r][1] = vdupq_n_s32(0);
    for (size_t i = 0; i < k; i += 8, w += 2 * STEP) products(w, x + i, x_row, n_tokens, sum);
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t r = 0; r < 4; r++)
        vst1q_s32(sums + t * sum_row + 4 * r, vpaddq_s32(sum[t][r][0], sum[t][r][1]));
}

void st_int8_tile_neon(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                       size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    const int8_t *tokens = (const int8_t *)x;
    (void)n_panels; // 1
    if (n_tokens == 2)
        tile(w, tokens, x_row, 2, k, sums, sum_row);
    else
        tile(w, tokens, x_row, 1, k, sums, sum_row);
}

// SPDX-License-Identifier: Apache-2.0
// 16 rows by 4 tokens: 16 registers of sums; a lane of a token's 16 bytes meets 4 rows at once.
#include "kernels/int8_tiles.h"

#include <arm_neon.h>

#define UNROLL _Pragma("GCC unroll 4")

enum { STEP = 4 * ST_INT8_PANEL }; // bytes of a panel per 4 elements of k

// In place: GCC 12 copies sums otherwise.
#define LANE(l)                                                                                    \
    UNROLL for (size_t r = 0; r < 4; r++) {                                                        \
        int8x16_t rows = vld1q_s8(w + (l)*STEP + 16 * r);                                          \
        UNROLL for (size_t t = 0; t < n_tokens; t++) __asm__(                                      \
            "sdot %0.4s, %1.16b, %2.4b[" #l "]" : "+w"(sum[t][r]) : "w"(rows), "w"(token[t]));     \
    }

// n_tokens is a constant where this is called.
static inline __attribute__((always_inline)) void tile(const int8_t *w, const int8_t *x,
                                                       size_t x_row, size_t n_tokens, size_t k,
                                                       int32_t *sums, size_t sum_row) {
    int32x4_t sum[4][4];
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t r = 0; r < 4; r++) sum[t][r] =
        vdupq_n_s32(0);
    for (size_t i = 0; i < k; i += 16, w += 4 * STEP) {
        int8x16_t token[4];
        UNROLL for (size_t t = 0; t < n_tokens; t++) token[t] = vld1q_s8(x + t * x_row + i);
        LANE(0)
        LANE(1)
        LANE(2)
        LANE(3)
    }
    UNROLL for (size_t t = 0; t < n_tokens; t++) UNROLL for (size_t r = 0; r < 4; r++)
        vst1q_s32(sums + t * sum_row + 4 * r, sum[t][r]);
}

void st_int8_tile_dotprod(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                          size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    const int8_t *tokens = (const int8_t *)x;
    (void)n_panels; // 1
    if (n_tokens == 4)
        tile(w, tokens, x_row, 4, k, sums, sum_row);
    else if (n_tokens == 3)
        tile(w, tokens, x_row, 3, k, sums, sum_row);
    else if (n_tokens == 2)
        tile(w, tokens, x_row, 2, k, sums, sum_row);
    else
        tile(w, tokens, x_row, 1, k, sums, sum_row);
}

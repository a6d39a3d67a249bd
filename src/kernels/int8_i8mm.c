// SPDX-License-Identifier: Apache-2.0
// smmla multiplies 2 rows by 2 tokens over 8 elements of k. A step of the panel has 4 elements of
// 4 rows in a register: two steps, zipped by their 32-bit lanes, are 8 elements of 2 rows each.
#include "kernels/int8_tiles.h"

#include <arm_neon.h>

#define UNROLL _Pragma("GCC unroll 8")

enum { STEP = 4 * ST_INT8_PANEL, PAIRS = 4 }; // bytes per 4 elements of k; most pairs of tokens

#define INLINE static inline __attribute__((always_inline))

// 8 elements of k of two rows, or tokens; the first or the last 8 of 16.
INLINE int8x16_t first_eight(int8x16_t a, int8x16_t b) {
    return vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}
INLINE int8x16_t last_eight(int8x16_t a, int8x16_t b) {
    return vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}

// 8 elements of k of 8 rows, two and two.
INLINE void load_rows(const int8_t *w, int8x16_t rows[4]) {
    int32x4_t low0 = vreinterpretq_s32_s8(vld1q_s8(w));
    int32x4_t high0 = vreinterpretq_s32_s8(vld1q_s8(w + 16));
    int32x4_t low1 = vreinterpretq_s32_s8(vld1q_s8(w + STEP));
    int32x4_t high1 = vreinterpretq_s32_s8(vld1q_s8(w + STEP + 16));
    rows[0] = vreinterpretq_s8_s32(vzip1q_s32(low0, low1));
    rows[1] = vreinterpretq_s8_s32(vzip2q_s32(low0, low1));
    rows[2] = vreinterpretq_s8_s32(vzip1q_s32(high0, high1));
    rows[3] = vreinterpretq_s8_s32(vzip2q_s32(high0, high1));
}

// In place: GCC 12 copies sums otherwise, and spills them.
INLINE void add_products(int32x4_t *sum, int8x16_t rows, int8x16_t tokens) {
    __asm__("smmla %0.4s, %1.16b, %2.16b" : "+w"(*sum) : "w"(rows), "w"(tokens));
}

// 8 rows, half a panel, by n_pairs pairs of tokens; of an odd number the last token stands twice.
// n_pairs is a constant where this is called.
INLINE void half_tile(const int8_t *w, const int8_t *const *token, size_t n_tokens, size_t n_pairs,
                      size_t k, int32_t *sums, size_t sum_row) {
    int32x4_t sum[PAIRS][4]; // rows 2 r, 2 r + 1: {row x token, row x next, next row x token, ...}
    UNROLL for (size_t p = 0; p < n_pairs; p++) UNROLL for (size_t r = 0; r < 4; r++) sum[p][r] =
        vdupq_n_s32(0);
    for (size_t i = 0; i < k; i += 16, w += 4 * STEP) {
        int8x16_t first[4], last[4];
        load_rows(w, first);
        load_rows(w + 2 * STEP, last);
        UNROLL for (size_t p = 0; p < n_pairs; p++) {
            int8x16_t one = vld1q_s8(token[2 * p] + i), next = vld1q_s8(token[2 * p + 1] + i);
            int8x16_t tokens = first_eight(one, next);
            UNROLL for (size_t r = 0; r < 4; r++) add_products(&sum[p][r], first[r], tokens);
            tokens = last_eight(one, next);
            UNROLL for (size_t r = 0; r < 4; r++) add_products(&sum[p][r], last[r], tokens);
        }
    }
    UNROLL for (size_t p = 0; p < n_pairs; p++) {
        int32_t values[4][4];
        UNROLL for (size_t r = 0; r < 4; r++) vst1q_s32(values[r], sum[p][r]);
        for (size_t t = 2 * p; t < 2 * p + 2 && t < n_tokens; t++)
            for (size_t r = 0; r < 4; r++) {
                sums[t * sum_row + 2 * r] = values[r][t % 2];
                sums[t * sum_row + 2 * r + 1] = values[r][2 + t % 2];
            }
    }
}

void st_int8_tile_i8mm(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                       size_t n_tokens, size_t k, int32_t *sums, size_t sum_row) {
    const int8_t *token[2 * PAIRS];
    size_t n_pairs = (n_tokens + 1) / 2;
    (void)n_panels; // 1
    for (size_t t = 0; t < 2 * PAIRS; t++)
        token[t] = (const int8_t *)x + (t < n_tokens ? t : n_tokens - 1) * x_row;
    for (size_t half = 0; half < 2; half++) {
        const int8_t *rows = w + half * STEP / 2;
        int32_t *to = sums + half * ST_INT8_PANEL / 2;
        if (n_pairs == 4)
            half_tile(rows, token, n_tokens, 4, k, to, sum_row);
        else if (n_pairs == 3)
            half_tile(rows, token, n_tokens, 3, k, to, sum_row);
        else if (n_pairs == 2)
            half_tile(rows, token, n_tokens, 2, k, to, sum_row);
        else
            half_tile(rows, token, n_tokens, 1, k, to, sum_row);
    }
}

// SPDX-License-Identifier: Apache-2.0
// The INT8 product. A vector of weights holds 4 elements of 32 rows; vrmpy multiplies it with 4
// elements of an input row, which lie in a scalar register, and adds to 32 sums. Two vectors meet
// eight input rows: 16 accumulators, 32 products for 4 loads of weights and 8 of inputs.
#include "kernels.h"

#include <hexagon_protos.h>
#include <hexagon_types.h>
#include <hvx_hexagon_protos.h>

enum { VECTOR = 128, PAIR = 2 };

#define INLINE static inline __attribute__((always_inline))

void dsp_product_scalar(const uint8_t *w, const int8_t *x, uint32_t k, uint32_t n_rows,
                        const int32_t *start, int32_t *sums) {
    for (uint32_t t = 0; t < n_rows; t++)
        for (uint32_t r = 0; r < TILE_GROUP; r++) {
            uint32_t sum = (uint32_t)start[t];
            for (uint32_t i = 0; i < k; i++)
                sum += (uint32_t)(w[i / 4 * 4 * TILE_GROUP + 4 * r + i % 4] *
                                  x[i / 8 * 8 * TILE_STEP + 8 * t + i % 8]);
            sums[t * TILE_GROUP + r] = (int32_t)sum;
        }
}

// n_rows is a constant.
INLINE void multiply(const uint8_t *w, const int8_t *x, uint32_t k, int n_rows,
                     const int32_t *start, int32_t *sums) {
    const HVX_Vector *weights = (const HVX_Vector *)(const void *)w;
    const int64_t *inputs = (const int64_t *)(const void *)x;
    HVX_Vector *out = (HVX_Vector *)(void *)sums;
    HVX_Vector sum[TILE_STEP][PAIR];
#pragma clang loop unroll(full)
    for (int t = 0; t < n_rows; t++) sum[t][0] = sum[t][1] = Q6_V_vsplat_R(start[t]);
    for (uint32_t i = 0; i < k; i += TILE_K, weights += 2 * PAIR, inputs += TILE_STEP) {
        HVX_Vector a0 = weights[0], a1 = weights[1], b0 = weights[2], b1 = weights[3];
#pragma clang loop unroll(full)
        for (int t = 0; t < n_rows; t++) {
            int32_t low = (int32_t)inputs[t], high = (int32_t)(inputs[t] >> 32);
            sum[t][0] = Q6_Vw_vrmpyacc_VwVubRb(sum[t][0], a0, low);
            sum[t][1] = Q6_Vw_vrmpyacc_VwVubRb(sum[t][1], a1, low);
            sum[t][0] = Q6_Vw_vrmpyacc_VwVubRb(sum[t][0], b0, high);
            sum[t][1] = Q6_Vw_vrmpyacc_VwVubRb(sum[t][1], b1, high);
        }
    }
#pragma clang loop unroll(full)
    for (int t = 0; t < n_rows; t++) {
        out[PAIR * t] = sum[t][0];
        out[PAIR * t + 1] = sum[t][1];
    }
}

// A function for each, so that the registers are its own.
#define ROWS(n)                                                                                    \
    static __attribute__((noinline)) void multiply_##n(                                            \
        const uint8_t *w, const int8_t *x, uint32_t k, const int32_t *start, int32_t *sums) {      \
        multiply(w, x, k, n, start, sums);                                                         \
    }
ROWS(1)
ROWS(2)
ROWS(4)
ROWS(8)

// Few rows of input, as when tokens are generated, cost less than eight.
void dsp_product_hvx(const uint8_t *w, const int8_t *x, uint32_t k, uint32_t n_rows,
                     const int32_t *start, int32_t *sums) {
    if (n_rows > 4)
        multiply_8(w, x, k, start, sums);
    else if (n_rows > 2)
        multiply_4(w, x, k, start, sums);
    else if (n_rows > 1)
        multiply_2(w, x, k, start, sums);
    else
        multiply_1(w, x, k, start, sums);
}

// One row into its place among eight; returns its sum.
static int32_t pack_row(const int8_t *x, uint32_t n, int64_t *to) {
    const int64_t ones = 0x0101010101010101;
    const int64_t *from = (const int64_t *)(const void *)x;
    int64_t sums = 0;
    for (uint32_t i = 0; i < n; i += TILE_K, to += TILE_STEP) {
        int64_t eight = *from++;
        if (n - i < TILE_K) eight &= (int64_t)(((uint64_t)1 << 8 * (n - i)) - 1);
        sums = Q6_P_vrmpybsuacc_PP(sums, eight, ones);
        *to = eight;
    }
    return (int32_t)sums + (int32_t)(sums >> 32);
}

void dsp_pack_rows(const int8_t *x, uint32_t x_row, uint32_t n_rows, uint32_t n, int8_t *packed,
                   int32_t *start) {
    uint32_t k = tile_padded_k(n);
    int64_t *to = (int64_t *)(void *)packed;
    for (uint32_t t = 0; t < n_rows; t++) {
        int64_t *step = to + t / TILE_STEP * k;
        start[t] = -128 * pack_row(x + t * x_row, n, step + t % TILE_STEP);
    }
    for (uint32_t t = n_rows; t % TILE_STEP != 0; t++) {
        start[t] = 0;
        for (uint32_t i = 0; i < k / TILE_K; i++)
            to[t / TILE_STEP * k + i * TILE_STEP + t % TILE_STEP] = 0;
    }
}

void dsp_copy_group(void *to, const void *from, uint32_t bytes) {
    HVX_Vector *t = to;
    const HVX_Vector *f = from;
    for (uint32_t i = 0; i < bytes / VECTOR; i++) t[i] = f[i];
}

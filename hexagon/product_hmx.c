// SPDX-License-Identifier: Apache-2.0
// The INT8 product in tiles of the matrix unit. Weights keep their layout in memory: a group of 64
// packed rows is two columns of tiles, which lie side by side.
#include "hmx.h"

// Elements [k0, k0 + 32) of 64 rows, zeros for those that are not there.
static void gather_x(const int8_t *x, uint32_t k, uint32_t n_rows, uint32_t k0, int8_t *tile) {
    for (uint32_t t = 0; t < HMX_ROWS; t++)
        for (uint32_t i = 0; i < HMX_K; i++) {
            uint32_t at = k0 + i;
            const int8_t *step = x + t / TILE_STEP * TILE_STEP * k;
            bool there = t < n_rows && at < k;
            tile[t * HMX_K + i] =
                there ? step[at / 8 * 8 * TILE_STEP + 8 * (t % TILE_STEP) + at % 8] : 0;
        }
}

static void gather_w(const uint8_t *w, uint32_t k, uint32_t column, uint32_t k0, uint8_t *tile) {
    enum { ROW = 4 * HMX_COLUMNS };
    for (uint32_t q = 0; q < HMX_K / 4; q++)
        for (uint32_t i = 0; i < ROW; i++)
            tile[q * ROW + i] =
                k0 + 4 * q < k ? w[(k0 / 4 + q) * 4 * TILE_GROUP + column * ROW + i] : 0;
}

void dsp_product_hmx(struct hmx *hmx, const uint8_t *w, const int8_t *x, uint32_t k,
                     uint32_t n_rows, const int32_t *start, int32_t *sums) {
    static int8_t x_tile[HMX_X_BYTES] __attribute__((aligned(128)));
    static uint8_t w_tile[HMX_W_BYTES] __attribute__((aligned(128)));
    int32_t first[HMX_ROWS] = {0};
    for (uint32_t t = 0; t < n_rows; t++) first[t] = start[t];
    for (uint32_t column = 0; column < TILE_GROUP / HMX_COLUMNS; column++) {
        dsp_hmx_start(hmx, first);
        for (uint32_t k0 = 0; k0 < k; k0 += HMX_K) {
            gather_x(x, k, n_rows, k0, x_tile);
            gather_w(w, k, column, k0, w_tile);
            dsp_hmx_multiply(hmx, x_tile, w_tile);
        }
        for (uint32_t t = 0; t < n_rows; t++)
            for (uint32_t n = 0; n < HMX_COLUMNS; n++)
                sums[t * TILE_GROUP + column * HMX_COLUMNS + n] = hmx->sums[t][n];
    }
}

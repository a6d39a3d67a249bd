// SPDX-License-Identifier: Apache-2.0
#include "check.h"

enum { MAX_K = 200, CANARY = 0x5a5a5a5a };

static uint8_t w[MAX_K * TILE_GROUP] __attribute__((aligned(128)));
static int8_t x[HMX_ROWS * MAX_K] __attribute__((aligned(128)));
static int32_t start[HMX_ROWS], wanted[TILE_STEP * TILE_GROUP];
static int32_t sums[(HMX_ROWS + 1) * TILE_GROUP] __attribute__((aligned(128)));
static struct hmx hmx;

static bool agrees(check_hmx_fn *product, uint32_t k, uint32_t n_rows, bool ends) {
    bool holds = true;
    for (uint32_t i = 0; i < k * TILE_GROUP; i++)
        w[i] = (uint8_t)(ends ? (check_below(2) ? 1 : 255) : check_random());
    for (uint32_t i = 0; i < k * HMX_ROWS; i++)
        x[i] = (int8_t)(ends ? (check_below(2) ? -127 : 127) : (int32_t)check_below(255) - 127);
    for (uint32_t t = 0; t < HMX_ROWS; t++) start[t] = (int32_t)check_random();
    for (uint32_t i = 0; i < sizeof sums / sizeof *sums; i++) sums[i] = CANARY;
    uint32_t before = hmx.n_products;
    product(&hmx, w, x, k, n_rows, start, sums);
    holds &= hmx.n_products - before == TILE_GROUP / HMX_COLUMNS * ((k + HMX_K - 1) / HMX_K);
    for (uint32_t t = 0; t < n_rows; t += TILE_STEP) {
        uint32_t rows = tile_least(TILE_STEP, n_rows - t);
        dsp_product_scalar(w, x + t * k, k, rows, start + t, wanted);
        for (uint32_t i = 0; i < rows * TILE_GROUP; i++)
            holds &= sums[t * TILE_GROUP + i] == wanted[i];
    }
    for (uint32_t i = n_rows * TILE_GROUP; i < sizeof sums / sizeof *sums; i++)
        holds &= sums[i] == CANARY;
    return holds;
}

bool check_hmx(check_hmx_fn *product) {
    static const uint8_t lengths[] = {8, 24, 32, 40, 64, 96, MAX_K};
    static const uint8_t rows[] = {1, 7, 8, 9, 33, HMX_ROWS - 1, HMX_ROWS};
    bool holds = true;
    for (uint32_t i = 0; i < sizeof lengths; i++)
        for (uint32_t j = 0; j < sizeof rows; j++)
            holds &= agrees(product, lengths[i], rows[j], (i + j) % 2);
    return holds;
}

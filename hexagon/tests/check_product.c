// SPDX-License-Identifier: Apache-2.0
#include "check.h"

enum { MAX_K = 1032, MAX_ROWS = 24, CANARY = 0x5a5a5a5a };

static uint8_t w[MAX_K * TILE_GROUP + 256] __attribute__((aligned(128)));
static int8_t packed[MAX_ROWS * MAX_K] __attribute__((aligned(128)));
static int8_t x[MAX_ROWS * (MAX_K + 8)] __attribute__((aligned(8)));
static int8_t plain[TILE_GROUP * MAX_K];
static int32_t start[MAX_ROWS], wanted[TILE_STEP * TILE_GROUP];
static int32_t sums[TILE_STEP * TILE_GROUP + 32] __attribute__((aligned(128)));

// Any number, or one of the two ends, whose sums are the largest there are.
static int32_t random_from(int32_t low, int32_t high, bool ends) {
    if (ends) return check_below(2) ? low : high;
    return low + (int32_t)check_below((uint32_t)(high - low + 1));
}

static bool product_agrees(dsp_product_fn *product, uint32_t k, uint32_t n_rows, bool ends) {
    for (uint32_t i = 0; i < sizeof w; i++) w[i] = (uint8_t)random_from(1, 255, ends);
    for (uint32_t i = 0; i < k * TILE_STEP; i++) packed[i] = (int8_t)random_from(-127, 127, ends);
    for (uint32_t t = 0; t < TILE_STEP; t++) start[t] = (int32_t)check_random();
    for (uint32_t i = 0; i < sizeof sums / sizeof *sums; i++) sums[i] = CANARY;
    dsp_product_scalar(w, packed, k, n_rows, start, wanted);
    product(w, packed, k, n_rows, start, sums);
    bool agrees = true;
    for (uint32_t i = 0; i < n_rows * TILE_GROUP; i++) agrees &= sums[i] == wanted[i];
    for (uint32_t i = TILE_STEP * TILE_GROUP; i < sizeof sums / sizeof *sums; i++)
        agrees &= sums[i] == CANARY;
    return agrees;
}

bool check_product(dsp_product_fn *product) {
    static const uint16_t lengths[] = {8, 16, 24, 64, 72, 104, MAX_K};
    bool holds = true;
    for (uint32_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int ends = 0; ends < 2; ends++)
            holds &= product_agrees(product, lengths[i], TILE_STEP, ends);
    for (uint32_t n_rows = 1; n_rows <= TILE_STEP; n_rows++)
        holds &= product_agrees(product, 8 * (1 + check_below(24)), n_rows, false);
    return holds;
}

// Weights [TILE_GROUP, n] in the order of struct wire_linear.
static void lay_out(uint32_t n, uint32_t k) {
    for (uint32_t r = 0; r < TILE_GROUP; r++)
        for (uint32_t i = 0; i < k; i++)
            w[i / 4 * 4 * TILE_GROUP + 4 * r + i % 4] =
                (uint8_t)((i < n ? plain[r * n + i] : 0) + 128);
}

static int32_t dot(const int8_t *a, const int8_t *b, uint32_t n) {
    int32_t sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static bool rows_agree(check_pack_fn *pack, dsp_product_fn *product, uint32_t n_rows, uint32_t n,
                       bool ends) {
    uint32_t k = tile_padded_k(n), x_row = k + 8;
    bool agrees = true;
    for (uint32_t i = 0; i < TILE_GROUP * n; i++) plain[i] = (int8_t)random_from(-127, 127, ends);
    for (uint32_t i = 0; i < n_rows * x_row; i++) x[i] = (int8_t)random_from(-127, 127, ends);
    for (uint32_t i = 0; i < sizeof packed; i++) packed[i] = 77; // what was there before
    lay_out(n, k);
    pack(x, x_row, n_rows, n, packed, start);
    for (uint32_t t0 = 0; t0 < n_rows; t0 += TILE_STEP) {
        uint32_t t1 = t0 + tile_least(TILE_STEP, n_rows - t0);
        product(w, packed + t0 * k, k, t1 - t0, start + t0, sums);
        for (uint32_t t = t0; t < t1; t++)
            for (uint32_t r = 0; r < TILE_GROUP; r++)
                agrees &= sums[(t - t0) * TILE_GROUP + r] == dot(x + t * x_row, plain + r * n, n);
    }
    return agrees;
}

bool check_rows(check_pack_fn *pack, dsp_product_fn *product) {
    bool holds = true;
    for (uint32_t n = 1; n < 20; n++) holds &= rows_agree(pack, product, 1 + n % 9, n, n % 2);
    for (int i = 0; i < 6; i++)
        holds &= rows_agree(pack, product, 1 + check_below(MAX_ROWS), 1 + check_below(200), i % 2);
    return holds;
}

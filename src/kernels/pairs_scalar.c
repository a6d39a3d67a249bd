// SPDX-License-Identifier: Apache-2.0
// The definition.
#include "base/half.h"
#include "kernels/pairs_rows.h"

#include <string.h>

enum { M = 4, WIDTH = 4 };

static uint32_t pair(float even, float odd) {
    return st_bf16_from_f32(even) | (uint32_t)st_bf16_from_f32(odd) << 16;
}

static float even_of(uint32_t pair) {
    return st_f32_from_bf16((uint16_t)pair);
}

static float odd_of(uint32_t pair) {
    return st_f32_from_bf16((uint16_t)(pair >> 16));
}

void st_pair_tile_scalar(size_t k, const uint32_t *a, size_t a_row, size_t a_col, const uint32_t *b,
                         float *c, size_t c_row) {
    for (size_t m = 0; m < M; m++)
        for (size_t lane = 0; lane < WIDTH; lane++)
            for (size_t i = 0; i < k; i++) {
                uint32_t x = a[m * a_row + i * a_col], y = b[i * WIDTH + lane];
                c[m * c_row + lane] += odd_of(x) * odd_of(y);
                c[m * c_row + lane] += even_of(x) * even_of(y);
            }
}

// Whatever was written there: the output may stand where the input stood.
static float at(const float *x, size_t i) {
    float value;
    memcpy(&value, x + i, sizeof value);
    return value;
}

void st_pair_join_scalar(const float *x, size_t n, uint32_t *out) {
    for (size_t i = 0; i < n; i++) out[i] = pair(at(x, 2 * i), at(x, 2 * i + 1));
}

void st_pair_zip_scalar(const float *x, size_t n_rows, size_t n, uint32_t *out) {
    for (size_t r = 0; r < n_rows; r += 2, x += 2 * n, out += n)
        for (size_t i = 0; i < n; i++)
            out[i] = pair(at(x, i), r + 1 < n_rows ? at(x, n + i) : 0.0f);
}

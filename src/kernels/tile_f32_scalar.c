// SPDX-License-Identifier: Apache-2.0
#include "kernels/tile_rows.h"

enum { M = 4, WIDTH = 4 };

void st_tile_f32_scalar(size_t k, const float *a, size_t a_row, size_t a_col, const float *b,
                        float *c, size_t c_row) {
    for (size_t m = 0; m < M; m++)
        for (size_t lane = 0; lane < WIDTH; lane++)
            for (size_t i = 0; i < k; i++)
                c[m * c_row + lane] += a[m * a_row + i * a_col] * b[i * WIDTH + lane];
}

void st_tile_transpose_scalar(const float *a, size_t a_row, float *b, size_t b_row) {
    for (size_t j = 0; j < WIDTH; j++)
        for (size_t i = 0; i < WIDTH; i++) b[j * b_row + i] = a[i * a_row + j];
}

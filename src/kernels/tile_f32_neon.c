// SPDX-License-Identifier: Apache-2.0
#define TILE_M       8
#define TILE_VECTORS 3
#include "kernels/tile_body.h"

#include "kernels/tile_rows.h"

void st_tile_f32_neon_1(size_t k, const float *a, size_t a_row, size_t a_col, const float *b,
                        float *c, size_t c_row) {
    tile_any_stride(1, k, a, a_row, a_col, b, c, c_row);
}

void st_tile_f32_neon_2(size_t k, const float *a, size_t a_row, size_t a_col, const float *b,
                        float *c, size_t c_row) {
    tile_any_stride(2, k, a, a_row, a_col, b, c, c_row);
}

void st_tile_f32_neon_3(size_t k, const float *a, size_t a_row, size_t a_col, const float *b,
                        float *c, size_t c_row) {
    tile_any_stride(3, k, a, a_row, a_col, b, c, c_row);
}

void st_tile_transpose_neon(const float *a, size_t a_row, float *b, size_t b_row) {
    transpose(a, a_row, b, b_row);
}

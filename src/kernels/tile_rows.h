// SPDX-License-Identifier: Apache-2.0
// The functions behind the rows of tile.c.
#ifndef ST_KERNELS_TILE_ROWS_H
#define ST_KERNELS_TILE_ROWS_H

#include "kernels/tile.h"

st_tile_fn st_tile_f32_scalar;
st_tile_fn st_tile_f32_avx2_1, st_tile_f32_avx2_2;
st_tile_fn st_tile_f32_avx512_1, st_tile_f32_avx512_2, st_tile_f32_avx512_3;
st_tile_fn st_tile_f32_neon_1, st_tile_f32_neon_2, st_tile_f32_neon_3;
st_tile_transpose_fn st_tile_transpose_scalar, st_tile_transpose_avx2, st_tile_transpose_avx512,
    st_tile_transpose_neon;

#endif

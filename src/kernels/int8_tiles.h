// SPDX-License-Identifier: Apache-2.0
// The tile kernels of int8.c's table.
#ifndef ST_KERNELS_INT8_TILES_H
#define ST_KERNELS_INT8_TILES_H

#include "kernels/int8.h"

st_int8_tile_fn st_int8_tile_scalar;
st_int8_tile_fn st_int8_tile_avx2, st_int8_tile_avxvnni, st_int8_tile_avx512vnni, st_int8_tile_amx;
st_int8_two_fn st_int8_two_avx2;
st_int8_tile_fn st_int8_tile_neon, st_int8_tile_dotprod, st_int8_tile_i8mm;

#endif

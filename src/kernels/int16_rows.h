// SPDX-License-Identifier: Apache-2.0
// The functions behind the rows of int16.c.
#ifndef ST_KERNELS_INT16_ROWS_H
#define ST_KERNELS_INT16_ROWS_H

#include "kernels/block_types.h"
#include "kernels/int16.h"

st_int16_tile_fn st_int16_tile_scalar;
st_int16_quantize_fn st_int16_quantize_scalar;
st_int16_pairs_fn st_int16_pairs_scalar;

st_int16_tile_fn st_int16_tile_avx2_1, st_int16_tile_avx2_2;
st_int16_quantize_fn st_int16_quantize_avx2;
st_int16_pairs_fn st_int16_pairs_avx2;

st_int16_tile_fn st_int16_tile_avxvnni_1, st_int16_tile_avxvnni_2;

st_int16_tile_fn st_int16_tile_avx512vnni_1, st_int16_tile_avx512vnni_2, st_int16_tile_avx512vnni_3;

#define DECLARE(id, type, isa) st_int16_blocks_fn st_int16_##type##_##isa;
ST_BLOCK_TYPES(DECLARE, scalar)
ST_BLOCK_TYPES(DECLARE, avx2)
#undef DECLARE

#endif

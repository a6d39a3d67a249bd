// SPDX-License-Identifier: Apache-2.0
// The functions behind the rows of pairs.c.
#ifndef ST_KERNELS_PAIRS_ROWS_H
#define ST_KERNELS_PAIRS_ROWS_H

#include "kernels/pairs.h"

typedef void st_pair_join_fn(const float *x, size_t n, uint32_t *out);
typedef void st_pair_zip_fn(const float *x, size_t n_rows, size_t n, uint32_t *out);

st_pair_tile_fn st_pair_tile_scalar;
st_pair_join_fn st_pair_join_scalar;
st_pair_zip_fn st_pair_zip_scalar;

st_pair_tile_fn st_pair_tile_avx512bf16_1, st_pair_tile_avx512bf16_2, st_pair_tile_avx512bf16_3;
st_pair_tile_fn st_pair_tile_amx_1, st_pair_tile_amx_2, st_pair_tile_amx_3;
void st_pair_begin_amx(void);
void st_pair_end_amx(void);
st_pair_join_fn st_pair_join_avx512bf16;
st_pair_zip_fn st_pair_zip_avx512bf16;

#endif

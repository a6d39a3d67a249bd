// SPDX-License-Identifier: Apache-2.0
// The functions behind the rows of pairs.c.
#ifndef ST_KERNELS_PAIRS_ROWS_H
#define ST_KERNELS_PAIRS_ROWS_H

#include "kernels/pairs.h"

typedef void st_join_f16_fn(const uint16_t *x, size_t n, uint32_t *out);
typedef void st_zip_f16_fn(const uint16_t *x, size_t n_rows, size_t n, uint32_t *out);
typedef void st_zip_f32_fn(const float *x, size_t n_rows, size_t n, uint32_t *out);

st_pair_tile_fn st_pair_tile_scalar;
st_join_f16_fn st_join_f16_scalar;
st_zip_f16_fn st_zip_f16_scalar;
st_zip_f32_fn st_zip_f32_scalar;

st_pair_tile_fn st_pair_tile_avx512bf16_1, st_pair_tile_avx512bf16_2, st_pair_tile_avx512bf16_3;
st_join_f16_fn st_join_f16_avx512bf16;
st_zip_f16_fn st_zip_f16_avx512bf16;
st_zip_f32_fn st_zip_f32_avx512bf16;

#endif

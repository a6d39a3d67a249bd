// SPDX-License-Identifier: Apache-2.0
// The paths of kernels/linear.h that multiply by register tiles, and what they convert.
#ifndef ST_KERNELS_LINEAR_TILE_H
#define ST_KERNELS_LINEAR_TILE_H

#include "kernels/linear.h"

size_t st_linear_tile_scratch_floats(const struct st_tile *tile, size_t n_tokens);
size_t st_linear_tile_packed_floats(const struct st_tile *tile, size_t n_tokens, size_t k);
size_t st_linear_tile_block_tokens(const struct st_linear_kernels *kernels);

typedef void st_linear_pack_fn(const struct st_linear_kernels *kernels, const float *x,
                               size_t n_tokens, size_t k, size_t block, float *out);
typedef void st_linear_rows_fn(const struct st_linear_kernels *kernels,
                               const struct st_linear_args *args, size_t row0, size_t row1,
                               float *scratch);

// In floats; in BF16; in 16-bit integers.
st_linear_pack_fn st_linear_tile_pack, st_linear_tile_bf16_pack, st_linear_tile_int16_pack;
st_linear_rows_fn st_linear_tile_rows, st_linear_tile_bf16_rows, st_linear_tile_int16_rows;

typedef void st_linear_gated_fn(const struct st_linear_kernels *kernels,
                                const struct st_linear_gated *gated, size_t row0, size_t row1,
                                float *scratch);
st_linear_gated_fn st_linear_tile_gated, st_linear_tile_bf16_gated;

#endif

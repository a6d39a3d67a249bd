// SPDX-License-Identifier: Apache-2.0
// BF16 weights on the tile unit. Activations are split into a high and a low BF16 part, x = h + l
// to 16 bits, and both go through the same weights, so the result keeps float accuracy
// (docs/NUMERICS.md) at half the unit's rate. Weights are the A operand as they lie in the
// checkpoint: 16 rows of 32 elements, a row apart.
#ifndef ST_KERNELS_LINEAR_AMX_H
#define ST_KERNELS_LINEAR_AMX_H

#include "kernels/linear.h"

enum { ST_AMX_TOKENS = 32, ST_AMX_ROWS = 32, ST_AMX_K = 32 };

bool st_linear_bf16_amx_takes(enum st_dtype dtype, size_t k, size_t n_tokens);
size_t st_linear_bf16_amx_block_tokens(const struct st_linear_kernels *kernels);
// A block: [k / 32] steps of 4 tiles (tokens 0..15 high, 16..31 high, low, low), each 16 pairs of k
// by 16 tokens by 2.
void st_linear_bf16_amx_pack(const struct st_linear_kernels *kernels, const float *x,
                             size_t n_tokens, size_t k, size_t block, float *out);
void st_linear_bf16_amx_rows(const struct st_linear_kernels *kernels,
                             const struct st_linear_args *args, size_t row0, size_t row1,
                             float *scratch);

#endif

// SPDX-License-Identifier: Apache-2.0
// BF16 weights on the tile unit. An activation is the sum of three BF16 parts to all of its 24
// bits, and all go through the same weights, so the result keeps float accuracy (docs/NUMERICS.md)
// at a third of the unit's rate. Two parts were not enough for logits within 2e-4 sigma. Weights
// are the A operand as they lie in the checkpoint: 16 rows of 32 elements, a row apart.
#ifndef ST_KERNELS_LINEAR_AMX_H
#define ST_KERNELS_LINEAR_AMX_H

#include "kernels/linear.h"

enum { ST_AMX_TOKENS = 32, ST_AMX_ROWS = 32, ST_AMX_K = 32, ST_AMX_TERMS = 3 };

bool st_linear_bf16_amx_takes(enum st_dtype dtype, size_t k, size_t n_tokens);
size_t st_linear_bf16_amx_block_tokens(const struct st_linear_kernels *kernels);
// A block: [k / 32] steps of 2 tiles for each part, the highest first (tokens 0..15, 16..31), each
// 16 pairs of k by 16 tokens by 2.
void st_linear_bf16_amx_pack(const struct st_linear_kernels *kernels, const float *x,
                             size_t n_tokens, size_t k, size_t block, float *out);
void st_linear_bf16_amx_rows(const struct st_linear_kernels *kernels,
                             const struct st_linear_args *args, size_t row0, size_t row1,
                             float *scratch);

#endif

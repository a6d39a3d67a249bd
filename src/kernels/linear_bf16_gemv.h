// SPDX-License-Identifier: Apache-2.0
// BF16 weights times one token, or a few, at memory speed. Whole registers of 32 weights are loaded
// and taken apart into the even ones (shifted up) and the odd ones (masked), so the input is packed
// in that order: per 32 elements the 16 even ones, then the 16 odd ones.
#ifndef ST_KERNELS_LINEAR_BF16_GEMV_H
#define ST_KERNELS_LINEAR_BF16_GEMV_H

#include "kernels/linear.h"

bool st_linear_bf16_gemv_takes(enum st_dtype dtype, size_t k, size_t n_tokens);
size_t st_linear_bf16_gemv_block_tokens(const struct st_linear_kernels *kernels);
void st_linear_bf16_gemv_pack(const struct st_linear_kernels *kernels, const float *x,
                              size_t n_tokens, size_t k, size_t block, float *out);
void st_linear_bf16_gemv_rows(const struct st_linear_kernels *kernels,
                              const struct st_linear_args *args, size_t row0, size_t row1,
                              float *scratch);

#endif

// SPDX-License-Identifier: Apache-2.0
// BF16 weights on the tile unit. An activation is the sum of three BF16 parts to all of its 24
// bits, and all go through the same weights, so the result keeps float accuracy (docs/NUMERICS.md)
// at a third of the unit's rate. Two parts were not enough for logits within 2e-4 sigma. Weights
// are the A operand as they lie in the checkpoint: 16 rows of 32 elements, a row apart.
#ifndef ST_KERNELS_LINEAR_AMX_H
#define ST_KERNELS_LINEAR_AMX_H

#include "base/half.h"
#include "kernels/linear.h"

#include <string.h>

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
// The same for as many tokens as `gemv` takes, and for all rows of a step.
bool st_linear_bf16_few_amx_takes(enum st_dtype dtype, size_t k, size_t n_tokens);
size_t st_linear_bf16_few_amx_block_tokens(const struct st_linear_kernels *kernels);
void st_linear_bf16_few_amx_pack(const struct st_linear_kernels *kernels, const float *x,
                                 size_t n_tokens, size_t k, size_t block, float *out);
void st_linear_bf16_few_amx_rows(const struct st_linear_kernels *kernels,
                                 const struct st_linear_args *args, size_t row0, size_t row1,
                                 float *scratch);

// The parts of 32 floats, each [16 pairs of k, 2], as one dword for each pair.
static inline void st_amx_split(const float *x, uint32_t parts[ST_AMX_TERMS][ST_AMX_K / 2]) {
    float left[ST_AMX_K];
    memcpy(left, x, sizeof left);
    for (size_t term = 0; term < ST_AMX_TERMS; term++) {
        uint32_t rounded[ST_AMX_K];
        for (size_t i = 0; i < ST_AMX_K; i++) {
            rounded[i] = (uint32_t)st_bf16_from_f32(left[i]) << 16;
            left[i] -= st_float_from_bits(rounded[i]);
        }
        for (size_t i = 0; i < ST_AMX_K / 2; i++)
            parts[term][i] = rounded[2 * i] >> 16 | rounded[2 * i + 1];
    }
}

// 32 x 32 weights where fewer rows are left: copied, zeros below them.
static inline const unsigned char *st_amx_copy_rows(const unsigned char *w, size_t row_bytes,
                                                    size_t n_rows, unsigned char *copy) {
    memset(copy, 0, ST_AMX_ROWS * 64);
    for (size_t r = 0; r < n_rows; r++) memcpy(copy + r * 64, w + r * row_bytes, 64);
    return copy;
}

#endif

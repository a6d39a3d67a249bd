// SPDX-License-Identifier: Apache-2.0
// Random weights of any stored type.
#ifndef TESTS_BLOCK_WEIGHTS_H
#define TESTS_BLOCK_WEIGHTS_H

#include "base/dtype.h"
#include "base/half.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

// Where the f16 scales of a block lie.
static const struct {
    enum st_dtype dtype;
    size_t at[2];
    size_t n;
} bw_halves[] = {
    {ST_DTYPE_Q4_0, {0, 0}, 1},   {ST_DTYPE_Q4_1, {0, 2}, 2},   {ST_DTYPE_Q5_0, {0, 0}, 1},
    {ST_DTYPE_Q5_1, {0, 2}, 2},   {ST_DTYPE_Q8_0, {0, 0}, 1},   {ST_DTYPE_Q2_K, {80, 82}, 2},
    {ST_DTYPE_Q3_K, {108, 0}, 1}, {ST_DTYPE_Q4_K, {0, 2}, 2},   {ST_DTYPE_Q5_K, {0, 2}, 2},
    {ST_DTYPE_Q6_K, {208, 0}, 1}, {ST_DTYPE_IQ4_NL, {0, 0}, 1}, {ST_DTYPE_IQ4_XS, {0, 0}, 1},
    {ST_DTYPE_TQ1_0, {52, 0}, 1}, {ST_DTYPE_TQ2_0, {64, 0}, 1}};

// Sets all f16 scales of one block; the scale of MXFP4 to the power of two below.
static inline void bw_set_halves(enum st_dtype dtype, unsigned char *block, float value) {
    uint16_t half = st_f16_from_f32(value);
    if (dtype == ST_DTYPE_MXFP4)
        block[0] = (unsigned char)(value == 0.0f ? 0 : 128 + ilogbf(value));
    for (size_t i = 0; i < sizeof bw_halves / sizeof *bw_halves; i++)
        for (size_t j = 0; bw_halves[i].dtype == dtype && j < bw_halves[i].n; j++)
            memcpy(block + bw_halves[i].at[j], &half, sizeof half);
}

// Random bytes, with every f16 and float tamed.
static inline void bw_fill(enum st_dtype dtype, unsigned char *w, size_t bytes) {
    const struct st_dtype_traits *traits = st_dtype_traits(dtype);
    ts_random_bytes(w, bytes);
    for (size_t b = 0; b + traits->block_bytes <= bytes; b += traits->block_bytes) {
        float value = ts_random_float(-1.0f, 1.0f);
        uint16_t half = dtype == ST_DTYPE_BF16 ? st_bf16_from_f32(value) : st_f16_from_f32(value);
        if (dtype == ST_DTYPE_F32) memcpy(w + b, &value, sizeof value);
        if (dtype == ST_DTYPE_F16 || dtype == ST_DTYPE_BF16) memcpy(w + b, &half, sizeof half);
        bw_set_halves(dtype, w + b, value / 64.0f);
    }
}

#endif

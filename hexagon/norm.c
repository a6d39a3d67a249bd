// SPDX-License-Identifier: Apache-2.0
// RMSNorm with the bits of a host whose vectors have so many lanes (kernels/vec_norm.h).
#include "kernels.h"

#include "base/half.h"

#define INLINE static inline
#include "kernels/vec_norm.h"

float dsp_root(float x) {
    return norm_root(x);
}

static float square_sum(const float *x, uint32_t n, uint32_t lanes) {
    float sums[NORM_SUMS * NORM_MAX_LANES] = {0.0f}; // those of a vector side by side
    uint32_t i = 0, step = NORM_SUMS * lanes;
    for (; i + step <= n; i += step)
        for (uint32_t j = 0; j < step; j++) sums[j] = __builtin_fmaf(x[i + j], x[i + j], sums[j]);
    for (uint32_t l = 0; i < n; i++, l = l + 1 < lanes ? l + 1 : 0)
        sums[l] = __builtin_fmaf(x[i], x[i], sums[l]);
    return norm_total(sums, lanes);
}

void dsp_rmsnorm(const float *x, const float *weight, float epsilon, uint32_t n, uint32_t lanes,
                 float *y) {
    float factor = 1.0f / dsp_root(square_sum(x, n, lanes) / (float)n + epsilon);
    for (uint32_t i = 0; i < n; i++) y[i] = x[i] * factor * weight[i];
}

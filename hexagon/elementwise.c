// SPDX-License-Identifier: Apache-2.0
// What device/epilogue.c computes with, here: the operations of kernels/elementwise_ops.h on one
// float at a time, so that all bits are those of the host's vector units.
#include "kernels.h"

#include "vec_float.h"

#define INLINE static inline __attribute__((always_inline))
#include "kernels/elementwise_ops.h"

static float max_magnitude(const float *x, size_t n) {
    float max = 0.0f;
    for (size_t i = 0; i < n; i++) max = vf_max(vf_abs(x[i]), max);
    return max;
}

static void dequantize(const int32_t *sums, const int32_t *row_sums, int32_t zero, float own,
                       const float *factor, const float *bias, size_t n, float *y) {
    (void)row_sums;
    (void)zero; // is 0: the product itself takes away what unsigned weights add
    for (size_t i = 0; i < n; i++) {
        y[i] = (float)sums[i] * (own * factor[i]);
        if (bias) y[i] += bias[i];
    }
}

static void dequantize_two(const int32_t *first, const int32_t *second, const int32_t *row_sums,
                           int32_t zero, size_t k, float own, const float *factor,
                           const float *bias, size_t n, float *y) {
    (void)row_sums;
    (void)zero; // as above
    (void)k;    // any
    for (size_t i = 0; i < n; i++) {
        int64_t sum = (int64_t)ST_TERM_STEPS * first[i] + second[i];
        y[i] = joined((float)sum, own / ST_TERM_STEPS * factor[i], bias ? bias[i] : 0.0f);
    }
}

static size_t quantize(const float *x, size_t n, float step, uint8_t zero, uint8_t *q) {
    float edge = 127.0f * step, per_step = 1.0f / step;
    size_t clipped = 0;
    for (size_t i = 0; i < n; i++) {
        q[i] = (uint8_t)((int)quantized(x[i], per_step) + zero);
        clipped += vf_lt(edge, vf_abs(x[i]));
    }
    return clipped;
}

static size_t quantize_two(const float *x, size_t n, float step, uint8_t zero, uint8_t *q,
                           uint8_t *rest) {
    float edge = 127.0f * step, per_step = 1.0f / step;
    size_t clipped = 0;
    for (size_t i = 0; i < n; i++) {
        float first = quantized(x[i], per_step);
        float left = left_over(x[i], first, step, edge);
        q[i] = (uint8_t)((int)first + zero);
        rest[i] = (uint8_t)((int)quantized(left, per_step * ST_TERM_STEPS) + zero);
        clipped += vf_lt(edge, vf_abs(x[i]));
    }
    return clipped;
}

const struct st_elementwise dsp_elementwise = {.name = "elementwise_hexagon",
                                               .act = act,
                                               .act_gated = act_gated,
                                               .add = add,
                                               .quantize = quantize,
                                               .quantize_two = quantize_two,
                                               .dequantize_two = dequantize_two,
                                               .max_magnitude = max_magnitude,
                                               .dequantize = dequantize};

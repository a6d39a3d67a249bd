// SPDX-License-Identifier: Apache-2.0
// The definitions, with libm.
#include "kernels/elementwise_rows.h"

#include <math.h>

static float act_of(enum st_act kind, float x) {
    switch (kind) {
    case ST_ACT_SILU:
        return x / (1.0f + expf(-x));
    case ST_ACT_GELU_TANH:
        return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
    case ST_ACT_GELU_ERF:
        return 0.5f * x * (1.0f + erff(x * 0.7071067812f));
    case ST_ACT_RELU2:
        return x < 0.0f ? 0.0f : x * x;
    case ST_ACT_SWIGLU_CLAMPED:
        x = x > 7.0f ? 7.0f : x;
        return x / (1.0f + expf(-1.702f * x));
    case ST_ACT_RELU:
    case ST_ACT_DRELU:
    case ST_N_ACTS:
        break;
    }
    return x < 0.0f ? 0.0f : x;
}

static float up_of(enum st_act kind, float x) {
    if (kind == ST_ACT_DRELU) return act_of(kind, x);
    if (kind != ST_ACT_SWIGLU_CLAMPED) return x;
    return (x > 7.0f ? 7.0f : x < -7.0f ? -7.0f : x) + 1.0f;
}

static void act(enum st_act kind, const float *x, size_t n, float *y) {
    for (size_t i = 0; i < n; i++) y[i] = act_of(kind, x[i]);
}

static void act_gated(enum st_act kind, const float *gate, const float *up, size_t n, float *y) {
    for (size_t i = 0; i < n; i++) y[i] = act_of(kind, gate[i]) * up_of(kind, up[i]);
}

static void add(const float *x, size_t n, float *y) {
    for (size_t i = 0; i < n; i++) y[i] += x[i];
}

static void multiply(const float *x, size_t n, float *y) {
    for (size_t i = 0; i < n; i++) y[i] *= x[i];
}

static void short_conv(const float *const *rows, const float *taps, size_t n_taps,
                       const float *bias, const float *gate, size_t n, float *y) {
    for (size_t i = 0; i < n; i++) {
        float sum = bias ? bias[i] : 0.0f;
        for (size_t k = 0; k < n_taps; k++) sum += rows[k] ? rows[k][i] * taps[k * n + i] : 0.0f;
        y[i] = gate ? gate[i] * sum : sum;
    }
}

static void axpy(float factor, const float *x, size_t n, float *y) {
    for (size_t i = 0; i < n; i++) y[i] += factor * x[i];
}

static void scale(float factor, const float *x, size_t n, float *y) {
    for (size_t i = 0; i < n; i++) y[i] = factor * x[i];
}

static void softcap(float cap, const float *x, size_t n, float *y) {
    for (size_t i = 0; i < n; i++) y[i] = cap * tanhf(x[i] / cap);
}

static void rmsnorm(const float *x, const float *weight, float epsilon, size_t n, float *y) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    float factor = (float)(1.0 / sqrt(sum / (double)n + (double)epsilon));
    for (size_t i = 0; i < n; i++) y[i] = x[i] * factor * weight[i];
}

static void layernorm(const float *x, const float *weight, const float *bias, float epsilon,
                      size_t n, float *y) {
    double mean = 0.0, variance = 0.0;
    for (size_t i = 0; i < n; i++) mean += (double)x[i] / (double)n;
    for (size_t i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean) / (double)n;
    double factor = 1.0 / sqrt(variance + (double)epsilon);
    for (size_t i = 0; i < n; i++)
        y[i] =
            (float)((x[i] - mean) * factor) * (weight ? weight[i] : 1.0f) + (bias ? bias[i] : 0.0f);
}

static void rope(float *x, const float *cosine, const float *sine, size_t n_dims,
                 bool interleaved) {
    size_t half = n_dims / 2;
    for (size_t i = 0; i < half; i++) {
        float *a = interleaved ? x + 2 * i : x + i, *b = interleaved ? a + 1 : a + half;
        float rotated = *a * cosine[i] - *b * sine[i];
        *b = *a * sine[i] + *b * cosine[i];
        *a = rotated;
    }
}

static int quantized(float x, float per_step) {
    float v = rintf(x * per_step);
    v = v > -127.0f ? v : -127.0f;
    return (int)(v < 127.0f ? v : 127.0f);
}

static size_t quantize(const float *x, size_t n, float step, uint8_t zero, uint8_t *q) {
    size_t clipped = 0;
    float per_step = 1.0f / step;
    for (size_t i = 0; i < n; i++) {
        clipped += fabsf(x[i]) > 127.0f * step;
        q[i] = (uint8_t)(quantized(x[i], per_step) + zero);
    }
    return clipped;
}

static size_t quantize_two(const float *x, size_t n, float step, uint8_t zero, uint8_t *q,
                           uint8_t *rest) {
    size_t clipped = quantize(x, n, step, zero, q);
    float edge = 127.0f * step, per_step = 1.0f / step;
    for (size_t i = 0; i < n; i++) {
        float whole = step * (float)(int8_t)(q[i] - zero);
        float left = fabsf(x[i]) > edge ? 0.0f : x[i] - whole;
        rest[i] = (uint8_t)(quantized(left, per_step * ST_TERM_STEPS) + zero);
    }
    return clipped;
}

static float max_magnitude(const float *x, size_t n) {
    float max = 0.0f;
    for (size_t i = 0; i < n; i++) max = fabsf(x[i]) > max ? fabsf(x[i]) : max;
    return max;
}

static void dequantize(const int32_t *sums, const int32_t *row_sums, int32_t zero, float own,
                       const float *scale, const float *bias, size_t n, float *y) {
    for (size_t i = 0; i < n; i++) {
        y[i] = (float)(sums[i] - zero * row_sums[i]) * (own * scale[i]);
        if (bias) y[i] += bias[i];
    }
}

static void dequantize_two(const int32_t *first, const int32_t *second, const int32_t *row_sums,
                           int32_t zero, size_t k, float own, const float *scale, const float *bias,
                           size_t n, float *y) {
    (void)k; // any
    for (size_t i = 0; i < n; i++) {
        int64_t more = (int64_t)zero * row_sums[i];
        int64_t sum = (int64_t)ST_TERM_STEPS * (first[i] - more) + (second[i] - more);
        y[i] = (float)sum * (own / ST_TERM_STEPS * scale[i]) + (bias ? bias[i] : 0.0f);
    }
}

static void dequantize_joint(const float *sums, float own, const float *scale, const float *bias,
                             size_t n, float *y) {
    for (size_t i = 0; i < n; i++)
        y[i] = sums[i] * (own / ST_TERM_STEPS * scale[i]) + (bias ? bias[i] : 0.0f);
}

static void axpy_int8(float a, const int8_t *x, const float *scale, size_t n, float *y) {
    for (size_t i = 0; i < n; i++) {
        float product = a * (float)x[i];
        y[i] += product * scale[i];
    }
}

static size_t argmax(const float *x, size_t n) {
    size_t best = n;
    for (size_t i = 0; i < n; i++)
        if (best == n ? x[i] == x[i] : x[i] > x[best]) best = i;
    return best == n ? 0 : best;
}

static bool is_finite(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

const struct st_elementwise st_elementwise_scalar = {.name = "elementwise_scalar",
                                                     .rmsnorm = rmsnorm,
                                                     .layernorm = layernorm,
                                                     .act = act,
                                                     .act_gated = act_gated,
                                                     .add = add,
                                                     .multiply = multiply,
                                                     .short_conv = short_conv,
                                                     .axpy = axpy,
                                                     .scale = scale,
                                                     .softcap = softcap,
                                                     .rope = rope,
                                                     .quantize = quantize,
                                                     .quantize_two = quantize_two,
                                                     .dequantize_two = dequantize_two,
                                                     .dequantize_joint = dequantize_joint,
                                                     .max_magnitude = max_magnitude,
                                                     .dequantize = dequantize,
                                                     .axpy_int8 = axpy_int8,
                                                     .argmax = argmax,
                                                     .finite = is_finite};

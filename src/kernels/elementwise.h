// SPDX-License-Identifier: Apache-2.0
// Norms, activations, rotary embedding, residual sums: everything between the linears, on one row
// at a time.
#ifndef ST_KERNELS_ELEMENTWISE_H
#define ST_KERNELS_ELEMENTWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// name in config.json and in output
#define ST_ACT_LIST(X)                                                                             \
    X(SILU, "silu")                                                                                \
    X(GELU_TANH, "gelu_tanh") /* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */                \
    X(GELU_ERF, "gelu")                                                                            \
    X(RELU, "relu")                                                                                \
    X(RELU2, "relu2") /* relu(x)^2 */                                                              \
    X(DRELU, "drelu") /* relu(gate) * relu(up); as a plain activation it is relu */                \
    X(SWIGLU_CLAMPED, "swiglu_clamped") /* g sigmoid(1.702 g) (u + 1), g = min(gate, 7) and u = up \
                                           in [-7, 7] (gpt-oss); plain: of the gate alone */

enum st_act {
#define X(id, name) ST_ACT_##id,
    ST_ACT_LIST(X)
#undef X
        ST_N_ACTS
};

// Steps of the second term in one of the first: half a step is the most that rounding leaves, 127
// of these.
#define ST_TERM_STEPS 254.0f

// So many products of two bytes, the second from -128 on, have sums that are exact floats.
enum { ST_FLOAT_PRODUCTS = 1024 };

// y may be x itself in every function of this file unless it says otherwise.
struct st_elementwise {
    const char *name;
    uint64_t isa;
    // Lanes of the four vectors in which rmsnorm sums a row; 0: it sums in double.
    uint32_t sum_lanes;
    // y[i] = x[i] * weight[i] / sqrt(mean(x^2) + epsilon)
    void (*rmsnorm)(const float *x, const float *weight, float epsilon, size_t n, float *y);
    // y[i] = (x[i] - mean) / sqrt(variance + epsilon) * weight[i] + bias[i]; weight and bias may be
    // NULL (1 and 0)
    void (*layernorm)(const float *x, const float *weight, const float *bias, float epsilon,
                      size_t n, float *y);
    // y[i] = act(x[i])
    void (*act)(enum st_act act, const float *x, size_t n, float *y);
    // y[i] = act(gate[i]) * up[i]; DRELU: relu(gate[i]) * relu(up[i])
    void (*act_gated)(enum st_act act, const float *gate, const float *up, size_t n, float *y);
    // y[i] += x[i]
    void (*add)(const float *x, size_t n, float *y);
    // y[i] *= x[i]
    void (*multiply)(const float *x, size_t n, float *y);
    // One token of a short convolution: y[i] = gate[i] * (bias[i] + sum of rows[k][i] * taps[k n +
    // i]), added in this order. A NULL row is zeros; bias may be NULL; gate too, and is 1 then; y
    // may be gate, but no row.
    void (*short_conv)(const float *const *rows, const float *taps, size_t n_taps,
                       const float *bias, const float *gate, size_t n, float *y);
    // y[i] += scale * x[i]
    void (*axpy)(float scale, const float *x, size_t n, float *y);
    // y[i] = scale * x[i]
    void (*scale)(float scale, const float *x, size_t n, float *y);
    // y[i] = cap * tanh(x[i] / cap)
    void (*softcap)(float cap, const float *x, size_t n, float *y);
    // Rotates x[0, n_dims) in place; cosine and sine have n_dims / 2 entries. Pairs are (i, i +
    // n_dims / 2), or (2 i, 2 i + 1) if interleaved.
    void (*rope)(float *x, const float *cosine, const float *sine, size_t n_dims, bool interleaved);
    // q[i] = clamp(round_half_even(x[i] * (1 / scale)), -127, 127), stored as the byte zero + q[i].
    // Returns how many were clipped: |x[i]| > 127 scale. Every row gives the same bits. scale > 0.
    size_t (*quantize)(const float *x, size_t n, float scale, uint8_t zero, uint8_t *q);
    // Two-term INT8 (device/two_term.h): q as above; rest[i] is what q leaves of x[i], times
    // ST_TERM_STEPS * (1 / scale), rounded likewise, 0 where x[i] was clipped. Returns how many
    // were.
    size_t (*quantize_two)(const float *x, size_t n, float scale, uint8_t zero, uint8_t *q,
                           uint8_t *rest);
    // The largest |x[i]|; 0 where n is 0. NaN never wins.
    float (*max_magnitude)(const float *x, size_t n);
    // y[i] = (float)(sums[i] - zero * row_sums[i]) * (own * scale[i]) + bias[i], rounded after each
    // product and after the sum, so that every row gives the same bits. own: the scale of the
    // input, or 1 where scale[] has it; bias may be NULL.
    void (*dequantize)(const int32_t *sums, const int32_t *row_sums, int32_t zero, float own,
                       const float *scale, const float *bias, size_t n, float *y);
    // The same of two-term INT8: y[i] = (float)(ST_TERM_STEPS * first[i] + second[i]) * (own /
    // ST_TERM_STEPS * scale[i]) + bias[i], where both are less zero * row_sums[i]. The whole number
    // is exact. k: the products in each sum.
    void (*dequantize_two)(const int32_t *first, const int32_t *second, const int32_t *row_sums,
                           int32_t zero, size_t k, float own, const float *scale, const float *bias,
                           size_t n, float *y);
    // The same of both terms' sums as one: y[i] = sums[i] * (own / ST_TERM_STEPS * scale[i]) +
    // bias[i]. NULL where no INT8 kernel has such sums.
    void (*dequantize_joint)(const float *sums, float own, const float *scale, const float *bias,
                             size_t n, float *y);
    // y[i] += a * x[i] * scale[i], rounded after each step, so that every row gives the same bits.
    void (*axpy_int8)(float a, const int8_t *x, const float *scale, size_t n, float *y);
    // The largest element's index, the lowest one of equals; NaN never wins. n >= 1.
    size_t (*argmax)(const float *x, size_t n);
    // Whether no element is infinite or NaN.
    bool (*finite)(const float *x, size_t n);
};

extern const struct st_elementwise *const st_elementwises[]; // best first; ends with NULL
const struct st_elementwise *st_elementwise_select(uint64_t cpu_flags);

#endif

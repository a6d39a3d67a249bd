// SPDX-License-Identifier: Apache-2.0
// Everything between the linears for one instruction set: whole vectors, then one partial one.
#include "base/cpu.h"
#include "kernels/elementwise_rows.h"
#include "kernels/vec.h"

#include <math.h>

#define INLINE static inline __attribute__((always_inline))
#include "kernels/elementwise_ops.h"

INLINE vf scale_of(vf a, vf b, float p) {
    (void)b;
    return vf_mul(a, vf_set1(p));
}
INLINE vf axpy_of(vf a, vf b, float p) {
    return vf_fma(vf_set1(p), a, b);
}
INLINE vf softcap_of(vf a, vf b, float p) {
    (void)b;
    return vf_mul(vf_set1(p), tanh_of(vf_div(a, vf_set1(p))));
}
INLINE vf shift_of(vf a, vf b, float p) {
    (void)b;
    return vf_sub(a, vf_set1(p));
}

INLINE vf product_of(vf a, vf b, float p) {
    (void)p;
    return vf_mul(a, b);
}

static void scale(float p, const float *x, size_t n, float *y) {
    map(scale_of, x, x, p, n, y);
}

static void multiply(const float *x, size_t n, float *y) {
    map(product_of, x, y, 0.0f, n, y);
}

INLINE vf load_some(const float *p, size_t n) {
    return n == VF_LANES ? vf_load(p) : vf_load_n(p, n);
}

// Elements [i, i + here) of a row of n.
INLINE void short_conv_some(const float *const *rows, const float *taps, size_t n_taps,
                            const float *bias, const float *gate, size_t n, size_t i, size_t here,
                            float *y) {
    vf sum = bias ? load_some(bias + i, here) : vf_zero();
    for (size_t k = 0; k < n_taps; k++)
        if (rows[k])
            sum = vf_fma(load_some(rows[k] + i, here), load_some(taps + k * n + i, here), sum);
    if (gate) sum = vf_mul(load_some(gate + i, here), sum);
    if (here == VF_LANES)
        vf_store(y + i, sum);
    else
        vf_store_n(y + i, sum, here);
}

static void short_conv(const float *const *rows, const float *taps, size_t n_taps,
                       const float *bias, const float *gate, size_t n, float *y) {
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        short_conv_some(rows, taps, n_taps, bias, gate, n, i, VF_LANES, y);
    if (i < n) short_conv_some(rows, taps, n_taps, bias, gate, n, i, n - i, y);
}

static void axpy(float p, const float *x, size_t n, float *y) {
    map(axpy_of, x, y, p, n, y);
}
static void softcap(float p, const float *x, size_t n, float *y) {
    map(softcap_of, x, x, p, n, y);
}

// Sum of x[i] b[i], in four accumulators.
INLINE float dot(const float *x, const float *b, size_t n) {
    vf sum[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    size_t i = 0;
    for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES)
        _Pragma("GCC unroll 4") for (size_t j = 0; j < 4; j++) sum[j] =
            vf_fma(vf_load(x + i + j * VF_LANES), vf_load(b + i + j * VF_LANES), sum[j]);
    for (; i < n; i += VF_LANES) {
        size_t rest = n - i < VF_LANES ? n - i : VF_LANES;
        sum[0] = vf_fma(vf_load_n(x + i, rest), vf_load_n(b + i, rest), sum[0]);
    }
    return vf_sum(vf_add(vf_add(sum[0], sum[1]), vf_add(sum[2], sum[3])));
}

INLINE float sum_all(const float *x, size_t n) {
    vf sum[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    size_t i = 0;
    for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES)
        _Pragma("GCC unroll 4") for (size_t j = 0; j < 4; j++) sum[j] =
            vf_add(vf_load(x + i + j * VF_LANES), sum[j]);
    for (; i < n; i += VF_LANES)
        sum[0] = vf_add(vf_load_n(x + i, n - i < VF_LANES ? n - i : VF_LANES), sum[0]);
    return vf_sum(vf_add(vf_add(sum[0], sum[1]), vf_add(sum[2], sum[3])));
}

INLINE vf times_weight(vf a, vf w, float p) {
    return vf_mul(vf_mul(a, vf_set1(p)), w);
}

static void rmsnorm(const float *x, const float *weight, float epsilon, size_t n, float *y) {
    map(times_weight, x, weight, 1.0f / sqrtf(dot(x, x, n) / (float)n + epsilon), n, y);
}

static void layernorm(const float *x, const float *weight, const float *bias, float epsilon,
                      size_t n, float *y) {
    map(shift_of, x, x, sum_all(x, n) / (float)n, n, y);
    map(shift_of, y, y, sum_all(y, n) / (float)n, n, y); // what rounding left of the mean
    float factor = 1.0f / sqrtf(dot(y, y, n) / (float)n + epsilon);
    if (weight)
        map(times_weight, y, weight, factor, n, y);
    else
        map(scale_of, y, y, factor, n, y);
    if (bias) map(sum_of, y, bias, 0.0f, n, y);
}

// The pairs (a[i], b[i]) of one vector, turned.
INLINE void turn(vf *a, vf *b, vf cosine, vf sine) {
    vf x = vf_sub(vf_mul(*a, cosine), vf_mul(*b, sine));
    *b = vf_add(vf_mul(*a, sine), vf_mul(*b, cosine));
    *a = x;
}

INLINE void rope_neighbours(float *x, const float *cosine, const float *sine, size_t half) {
    size_t i = 0;
    for (; i + VF_LANES <= half; i += VF_LANES) {
        vf low = vf_load(x + 2 * i), high = vf_load(x + 2 * i + VF_LANES);
        vf a = vf_even(low, high), b = vf_odd(low, high);
        turn(&a, &b, vf_load(cosine + i), vf_load(sine + i));
        vf_store(x + 2 * i, vf_zip_low(a, b));
        vf_store(x + 2 * i + VF_LANES, vf_zip_high(a, b));
    }
    for (; i < half; i++) {
        float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = a * cosine[i] - b * sine[i];
        x[2 * i + 1] = a * sine[i] + b * cosine[i];
    }
}

INLINE void rope_halves(float *x, const float *cosine, const float *sine, size_t half) {
    size_t i = 0;
    for (; i + VF_LANES <= half; i += VF_LANES) {
        vf a = vf_load(x + i), b = vf_load(x + half + i);
        turn(&a, &b, vf_load(cosine + i), vf_load(sine + i));
        vf_store(x + i, a);
        vf_store(x + half + i, b);
    }
    if (i < half) {
        size_t n = half - i;
        vf a = vf_load_n(x + i, n), b = vf_load_n(x + half + i, n);
        turn(&a, &b, vf_load_n(cosine + i, n), vf_load_n(sine + i, n));
        vf_store_n(x + i, a, n);
        vf_store_n(x + half + i, b, n);
    }
}

static void rope(float *x, const float *cosine, const float *sine, size_t n_dims,
                 bool interleaved) {
    if (interleaved)
        rope_neighbours(x, cosine, sine, n_dims / 2);
    else
        rope_halves(x, cosine, sine, n_dims / 2);
}

static size_t quantize(const float *x, size_t n, float step, uint8_t zero, uint8_t *q) {
    vf per_step = vf_set1(1.0f / step), edge = vf_set1(127.0f * step);
    vf offset = vf_set1((float)zero);
    size_t i = 0, clipped = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf v = vf_load(x + i);
        clipped += vf_count(vf_lt(edge, vf_abs(v)));
        vf_store_u8(q + i, vf_add(quantized(v, per_step), offset));
    }
    if (i < n) {
        uint8_t rest[VF_LANES];
        vf v = vf_load_n(x + i, n - i);
        clipped += vf_count(vf_lt(edge, vf_abs(v)));
        vf_store_u8(rest, vf_add(quantized(v, per_step), offset));
        memcpy(q + i, rest, n - i);
    }
    return clipped;
}

// One vector of quantize_two(); returns how many were clipped.
INLINE size_t put_two(vf v, float step, float per_step, uint8_t zero, uint8_t *q, uint8_t *rest) {
    vf edge = vf_set1(127.0f * step), offset = vf_set1((float)zero);
    vf first = quantized(v, vf_set1(per_step));
    vf left = left_over(v, first, vf_set1(step), edge);
    vf second = quantized(left, vf_set1(per_step * ST_TERM_STEPS));
    vf_store_u8(q, vf_add(first, offset));
    vf_store_u8(rest, vf_add(second, offset));
    return vf_count(vf_lt(edge, vf_abs(v)));
}

static size_t quantize_two(const float *x, size_t n, float step, uint8_t zero, uint8_t *q,
                           uint8_t *rest) {
    float per_step = 1.0f / step;
    size_t i = 0, clipped = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        clipped += put_two(vf_load(x + i), step, per_step, zero, q + i, rest + i);
    if (i < n) {
        uint8_t ends[2][VF_LANES];
        clipped += put_two(vf_load_n(x + i, n - i), step, per_step, zero, ends[0], ends[1]);
        memcpy(q + i, ends[0], n - i);
        memcpy(rest + i, ends[1], n - i);
    }
    return clipped;
}

// The second operand of max is the one that is kept where the first is NaN.
static float max_magnitude(const float *x, size_t n) {
    vf best[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    float lanes[VF_LANES], max = 0.0f;
    size_t i = 0;
    for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES)
        for (size_t j = 0; j < 4; j++)
            best[j] = vf_max(vf_abs(vf_load(x + i + j * VF_LANES)), best[j]);
    for (; i < n; i += VF_LANES) {
        vf v = i + VF_LANES <= n ? vf_load(x + i) : vf_load_n(x + i, n - i);
        best[0] = vf_max(vf_abs(v), best[0]);
    }
    vf_store(lanes, vf_max(vf_max(best[0], best[1]), vf_max(best[2], best[3])));
    for (size_t l = 0; l < VF_LANES; l++) max = lanes[l] > max ? lanes[l] : max;
    return max;
}

// Where zero is 0 or there is no bias, loops without them.
INLINE void dequantize_by(const int32_t *sums, const int32_t *row_sums, int32_t zero, float own,
                          const float *scale, const float *bias, size_t n, float *y) {
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf both = vf_mul(vf_set1(own), vf_load(scale + i));
        vf product = vf_mul(vf_from_i32(sums + i, row_sums + i, zero), both);
        vf_store(y + i, vf_add(product, bias ? vf_load(bias + i) : vf_zero()));
    }
    for (; i < n; i++) {
        y[i] = (float)(sums[i] - zero * row_sums[i]) * (own * scale[i]);
        if (bias) y[i] += bias[i];
    }
}

static void dequantize(const int32_t *sums, const int32_t *row_sums, int32_t zero, float own,
                       const float *scale, const float *bias, size_t n, float *y) {
    if (zero == 0 && !bias)
        dequantize_by(sums, row_sums, 0, own, scale, NULL, n, y);
    else if (zero == 0)
        dequantize_by(sums, row_sums, 0, own, scale, bias, n, y);
    else if (!bias)
        dequantize_by(sums, row_sums, zero, own, scale, NULL, n, y);
    else
        dequantize_by(sums, row_sums, zero, own, scale, bias, n, y);
}

// One rounding: few products' sums are exact floats, and doubles hold every sum; the loop's
// constant length lets compilers use vectors.
INLINE vf joint_sums(const int32_t *first, const int32_t *second, const int32_t *row_sums,
                     int32_t zero, bool few) {
    const double zeros = ((double)ST_TERM_STEPS + 1.0) * zero;
    float sums[VF_LANES];
    if (few)
        return vf_fma(vf_from_i32(first, row_sums, zero), vf_set1(ST_TERM_STEPS),
                      vf_from_i32(second, row_sums, zero));
    for (size_t i = 0; i < VF_LANES; i++) {
        double sum = __builtin_fma(ST_TERM_STEPS, first[i], second[i]);
        sums[i] = (float)(zero ? __builtin_fma(-zeros, row_sums[i], sum) : sum);
    }
    return vf_load(sums);
}

INLINE void dequantize_two_by(const int32_t *first, const int32_t *second, const int32_t *row_sums,
                              int32_t zero, bool few, float own, const float *scale,
                              const float *bias, size_t n, float *y) {
    vf of_row = vf_set1(own / ST_TERM_STEPS);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(y + i,
                 joined(joint_sums(first + i, second + i, row_sums + i, zero, few),
                        vf_mul(of_row, vf_load(scale + i)), bias ? vf_load(bias + i) : vf_zero()));
    if (i == n) return;
    int32_t ends[3][VF_LANES] = {0};
    memcpy(ends[0], first + i, (n - i) * sizeof *first);
    memcpy(ends[1], second + i, (n - i) * sizeof *second);
    memcpy(ends[2], row_sums + i, (n - i) * sizeof *row_sums);
    vf_store_n(y + i,
               joined(joint_sums(ends[0], ends[1], ends[2], zero, few),
                      vf_mul(of_row, vf_load_n(scale + i, n - i)),
                      bias ? vf_load_n(bias + i, n - i) : vf_zero()),
               n - i);
}

static void dequantize_two(const int32_t *first, const int32_t *second, const int32_t *row_sums,
                           int32_t zero, size_t k, float own, const float *scale, const float *bias,
                           size_t n, float *y) {
    bool few = k <= ST_FLOAT_PRODUCTS;
    if (zero == 0 && few)
        dequantize_two_by(first, second, row_sums, 0, true, own, scale, bias, n, y);
    else if (zero == 0)
        dequantize_two_by(first, second, row_sums, 0, false, own, scale, bias, n, y);
    else if (few)
        dequantize_two_by(first, second, row_sums, zero, true, own, scale, bias, n, y);
    else
        dequantize_two_by(first, second, row_sums, zero, false, own, scale, bias, n, y);
}

static void dequantize_joint(const float *sums, float own, const float *scale, const float *bias,
                             size_t n, float *y) {
    vf of_row = vf_set1(own / ST_TERM_STEPS);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(y + i, joined(vf_load(sums + i), vf_mul(of_row, vf_load(scale + i)),
                               bias ? vf_load(bias + i) : vf_zero()));
    if (i == n) return;
    vf_store_n(y + i,
               joined(vf_load_n(sums + i, n - i), vf_mul(of_row, vf_load_n(scale + i, n - i)),
                      bias ? vf_load_n(bias + i, n - i) : vf_zero()),
               n - i);
}

static void axpy_int8(float a, const int8_t *x, const float *scale, size_t n, float *y) {
    vf factor = vf_set1(a);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf product = vf_mul(vf_mul(factor, vf_load_i8(x + i)), vf_load(scale + i));
        vf_store(y + i, vf_add(vf_load(y + i), product));
    }
    for (; i < n; i++) {
        float product = a * (float)x[i];
        y[i] += product * scale[i];
    }
}

// The largest of n elements; -infinity where there is none. NaN loses.
INLINE float most_of(const float *x, size_t n) {
    const vf min = vf_set1(-INFINITY);
    vf best[4] = {min, min, min, min};
    float lanes[VF_LANES], max = -INFINITY;
    size_t i = 0;
    for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES)
        _Pragma("GCC unroll 4") for (size_t j = 0; j < 4; j++) best[j] =
            vf_max(vf_load(x + i + j * VF_LANES), best[j]);
    vf_store(lanes, vf_max(vf_max(best[0], best[1]), vf_max(best[2], best[3])));
    for (size_t l = 0; l < VF_LANES; l++) max = lanes[l] > max ? lanes[l] : max;
    for (; i < n; i++) max = x[i] > max ? x[i] : max;
    return max;
}

// The first block that has the largest value, then where in it that stands.
static size_t argmax(const float *x, size_t n) {
    enum { BLOCK = 1024 };
    float max = -INFINITY;
    size_t from = 0;
    for (size_t i = 0; i < n; i += BLOCK) {
        float here = most_of(x + i, n - i < BLOCK ? n - i : BLOCK);
        if (here > max) from = i;
        max = here > max ? here : max;
    }
    for (size_t i = from; i < n; i++)
        if (x[i] == max) return i;
    return 0;
}

// Only what is infinite or NaN is not 0 times 0.
static bool is_finite(const float *x, size_t n) {
    vf sum[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    float lanes[VF_LANES], all = 0.0f;
    size_t i = 0;
    for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES)
        _Pragma("GCC unroll 4") for (size_t j = 0; j < 4; j++) sum[j] =
            vf_fma(vf_load(x + i + j * VF_LANES), vf_zero(), sum[j]);
    vf_store(lanes, vf_add(vf_add(sum[0], sum[1]), vf_add(sum[2], sum[3])));
    for (size_t l = 0; l < VF_LANES; l++) all += lanes[l];
    for (; i < n; i++) all += 0.0f * x[i];
    return all == 0.0f;
}

const struct st_elementwise ELEMENTWISE = {.name = ELEMENTWISE_NAME,
                                           .isa = ELEMENTWISE_ISA,
                                           .sum_lanes = VF_LANES,
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

// SPDX-License-Identifier: Apache-2.0
// Activations and quantization of one vector `vf`, for elementwise_ops.h and for the program of the
// device `opencl`, whose vectors are single floats: the same operations in the same order, so that
// all agree bit for bit. INLINE and ST_TERM_STEPS are the includer's. Nothing here but C that
// OpenCL has: no pointers to functions, no includes.
#ifndef ST_KERNELS_ACTIVATIONS_H
#define ST_KERNELS_ACTIVATIONS_H

INLINE vf tanh_of(vf x) { // 1 - 2 / (e^2x + 1): right at both infinities, 1e-7 absolute
    vf e = vf_exp(vf_add(x, x));
    return vf_sub(vf_set1(1.0f), vf_div(vf_set1(2.0f), vf_add(e, vf_set1(1.0f))));
}

// Abramowitz and Stegun 7.1.26: 1.5e-7 absolute.
INLINE vf erf_of(vf x) {
    vf a = vf_abs(x), t = vf_div(vf_set1(1.0f), vf_fma(a, vf_set1(0.3275911f), vf_set1(1.0f)));
    vf p = vf_fma(t, vf_set1(1.061405429f), vf_set1(-1.453152027f));
    p = vf_fma(p, t, vf_set1(1.421413741f));
    p = vf_fma(p, t, vf_set1(-0.284496736f));
    p = vf_mul(vf_fma(p, t, vf_set1(0.254829592f)), t);
    vf y = vf_sub(vf_set1(1.0f), vf_mul(p, vf_exp(vf_sub(vf_zero(), vf_mul(a, a)))));
    return vf_select(vf_lt(x, vf_zero()), vf_sub(vf_zero(), y), y);
}

INLINE vf silu(vf x, vf b, float p) {
    (void)b, (void)p;
    return vf_div(x, vf_add(vf_set1(1.0f), vf_exp(vf_sub(vf_zero(), x))));
}

INLINE vf gelu_tanh(vf x, vf b, float p) {
    (void)b, (void)p;
    vf cube = vf_mul(vf_mul(x, x), x);
    vf inner = vf_mul(vf_set1(0.7978845608f), vf_fma(vf_set1(0.044715f), cube, x));
    return vf_mul(vf_mul(vf_set1(0.5f), x), vf_add(vf_set1(1.0f), tanh_of(inner)));
}

INLINE vf gelu_erf(vf x, vf b, float p) {
    (void)b, (void)p;
    vf e = erf_of(vf_mul(x, vf_set1(0.7071067812f)));
    return vf_mul(vf_mul(vf_set1(0.5f), x), vf_add(vf_set1(1.0f), e));
}

INLINE vf relu(vf x, vf b, float p) {
    (void)b, (void)p;
    return vf_max(vf_zero(), x); // the second operand where one is NaN: it stays one
}

INLINE vf relu2(vf x, vf b, float p) {
    vf r = relu(x, b, p);
    return vf_mul(r, r);
}

// gpt-oss: of the gate; and of what it is multiplied with.
INLINE vf clamped_gate(vf x, vf b, float p) {
    (void)b, (void)p;
    vf g = vf_min(vf_set1(7.0f), x); // a NaN stays one
    vf e = vf_exp(vf_mul(g, vf_set1(-1.702f)));
    return vf_div(g, vf_add(vf_set1(1.0f), e));
}

INLINE vf clamped_up(vf x) {
    return vf_add(vf_min(vf_set1(7.0f), vf_max(vf_set1(-7.0f), x)), vf_set1(1.0f));
}

// One vector of quantize(); the first operand of max and min is the one that may be NaN.
INLINE vf quantized(vf x, vf per_step) {
    vf q = vf_round(vf_mul(x, per_step));
    return vf_min(vf_max(q, vf_set1(-127.0f)), vf_set1(127.0f));
}

// One vector of quantize_two(): what the first term leaves.
INLINE vf left_over(vf x, vf q, vf step, vf edge) {
    return vf_select(vf_lt(edge, vf_abs(x)), vf_zero(), vf_sub(x, vf_mul(step, q)));
}

// sum: ST_TERM_STEPS times that of the first terms, plus that of the second ones. scale: of one of
// these steps.
INLINE vf joined(vf sum, vf scale, vf bias) {
    return vf_add(vf_mul(sum, scale), bias);
}

#endif

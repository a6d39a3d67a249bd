// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels over a vector type `vf`, for elementwise_body.h and for the Hexagon program:
// the same operations in the same order, so that they agree bit for bit. INLINE is the includer's.
#ifndef ST_KERNELS_ELEMENTWISE_OPS_H
#define ST_KERNELS_ELEMENTWISE_OPS_H

// One vector of a map; p is its parameter.
typedef vf map_fn(vf a, vf b, float p);

// y[i] = fn(a[i], b[i], p)
INLINE void map(map_fn *fn, const float *a, const float *b, float p, size_t n, float *y) {
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) vf_store(y + i, fn(vf_load(a + i), vf_load(b + i), p));
    if (i < n) vf_store_n(y + i, fn(vf_load_n(a + i, n - i), vf_load_n(b + i, n - i), p), n - i);
}

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

INLINE vf silu_up(vf x, vf up, float p) {
    return vf_mul(silu(x, up, p), up);
}
INLINE vf gelu_tanh_up(vf x, vf up, float p) {
    return vf_mul(gelu_tanh(x, up, p), up);
}
INLINE vf gelu_erf_up(vf x, vf up, float p) {
    return vf_mul(gelu_erf(x, up, p), up);
}
INLINE vf relu_up(vf x, vf up, float p) {
    return vf_mul(relu(x, up, p), up);
}
INLINE vf relu2_up(vf x, vf up, float p) {
    return vf_mul(relu2(x, up, p), up);
}
INLINE vf relu_both(vf x, vf up, float p) {
    return vf_mul(relu(x, up, p), relu(up, x, p));
}

// One vector of quantize(); the first operand of max and min is the one that may be NaN.
INLINE vf quantized(vf x, vf step) {
    vf q = vf_round(vf_div(x, step));
    return vf_min(vf_max(q, vf_set1(-127.0f)), vf_set1(127.0f));
}

// One vector of quantize_two(): what the first term leaves.
INLINE vf left_over(vf x, vf q, vf step, vf edge) {
    return vf_select(vf_lt(edge, vf_abs(x)), vf_zero(), vf_sub(x, vf_mul(step, q)));
}

INLINE vf joined(vf product, vf rest, vf bias) {
    return vf_add(vf_add(product, vf_div(rest, vf_set1(ST_TERM_STEPS))), bias);
}

INLINE vf sum_of(vf a, vf b, float p) {
    (void)p;
    return vf_add(a, b);
}
INLINE vf scale_of(vf a, vf b, float p) {
    (void)b;
    return vf_mul(a, vf_set1(p));
}

static void act(enum st_act kind, const float *x, size_t n, float *y) {
    switch (kind) {
    case ST_ACT_SILU:
        map(silu, x, x, 0.0f, n, y);
        break;
    case ST_ACT_GELU_TANH:
        map(gelu_tanh, x, x, 0.0f, n, y);
        break;
    case ST_ACT_GELU_ERF:
        map(gelu_erf, x, x, 0.0f, n, y);
        break;
    case ST_ACT_RELU2:
        map(relu2, x, x, 0.0f, n, y);
        break;
    case ST_ACT_RELU:
    case ST_ACT_DRELU:
    case ST_N_ACTS:
        map(relu, x, x, 0.0f, n, y);
        break;
    }
}

static void act_gated(enum st_act kind, const float *gate, const float *up, size_t n, float *y) {
    switch (kind) {
    case ST_ACT_SILU:
        map(silu_up, gate, up, 0.0f, n, y);
        break;
    case ST_ACT_GELU_TANH:
        map(gelu_tanh_up, gate, up, 0.0f, n, y);
        break;
    case ST_ACT_GELU_ERF:
        map(gelu_erf_up, gate, up, 0.0f, n, y);
        break;
    case ST_ACT_RELU:
        map(relu_up, gate, up, 0.0f, n, y);
        break;
    case ST_ACT_RELU2:
        map(relu2_up, gate, up, 0.0f, n, y);
        break;
    case ST_ACT_DRELU:
    case ST_N_ACTS:
        map(relu_both, gate, up, 0.0f, n, y);
        break;
    }
}

static void add(const float *x, size_t n, float *y) {
    map(sum_of, x, y, 0.0f, n, y);
}

static void scale(float p, const float *x, size_t n, float *y) {
    map(scale_of, x, x, p, n, y);
}

#endif

// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels over a vector type `vf`, for elementwise_body.h and for the Hexagon program:
// whole rows of what activations.h does with one vector. INLINE is the includer's.
#ifndef ST_KERNELS_ELEMENTWISE_OPS_H
#define ST_KERNELS_ELEMENTWISE_OPS_H

#include "kernels/activations.h"

// One vector of a map; p is its parameter.
typedef vf map_fn(vf a, vf b, float p);

// y[i] = fn(a[i], b[i], p)
INLINE void map(map_fn *fn, const float *a, const float *b, float p, size_t n, float *y) {
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) vf_store(y + i, fn(vf_load(a + i), vf_load(b + i), p));
    if (i < n) vf_store_n(y + i, fn(vf_load_n(a + i, n - i), vf_load_n(b + i, n - i), p), n - i);
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

INLINE vf clamped_both(vf x, vf up, float p) {
    return vf_mul(clamped_gate(x, up, p), clamped_up(up));
}

INLINE vf sum_of(vf a, vf b, float p) {
    (void)p;
    return vf_add(a, b);
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
    case ST_ACT_SWIGLU_CLAMPED:
        map(clamped_gate, x, x, 0.0f, n, y);
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
    case ST_ACT_SWIGLU_CLAMPED:
        map(clamped_both, gate, up, 0.0f, n, y);
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

#endif

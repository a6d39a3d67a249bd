// SPDX-License-Identifier: Apache-2.0
// The vector type of kernels/elementwise_ops.h here: one float, as the scalar unit computes it. The
// vector unit of v67 has no IEEE floats.
#ifndef DSP_VEC_FLOAT_H
#define DSP_VEC_FLOAT_H

#include "runtime.h"

#include <stdbool.h>

#define VF_LANES 1
typedef float vf;
typedef bool vm;

static inline vf vf_load(const float *p) {
    return *p;
}
static inline void vf_store(float *p, vf x) {
    *p = x;
}
static inline vf vf_load_n(const float *p, size_t n) {
    return n ? *p : 0.0f;
}
static inline void vf_store_n(float *p, vf x, size_t n) {
    if (n) *p = x;
}
static inline vf vf_set1(float x) {
    return x;
}
static inline vf vf_add(vf a, vf b) {
    return a + b;
}
static inline vf vf_sub(vf a, vf b) {
    return a - b;
}
static inline vf vf_mul(vf a, vf b) {
    return a * b;
}
static inline vf vf_div(vf a, vf b) {
    return a / b;
}
static inline vf vf_fma(vf a, vf b, vf c) {
    return __builtin_fmaf(a, b, c);
}
static inline vf vf_max(vf a, vf b) { // b where one is NaN
    return a > b ? a : b;
}
static inline vf vf_min(vf a, vf b) {
    return a < b ? a : b;
}
static inline vf vf_abs(vf a) {
    return __builtin_fabsf(a);
}
static inline vm vf_lt(vf a, vf b) {
    return a < b;
}
static inline vf vf_select(vm m, vf yes, vf no) {
    return m ? yes : no;
}
// To nearest even: where the last bit counts one, adding rounds.
static inline vf vf_round(vf a) {
    const float whole = 12582912.0f; // 1.5 * 2^23
    return __builtin_fabsf(a) < 4194304.0f ? (a + whole) - whole : a;
}
// x 2^n for whole n in [-126, 128], in two factors: 2^128 is no float
static inline vf vf_scale2(vf x, vf n) {
    int32_t whole = (int32_t)n, half = whole >> 1;
    uint32_t one = (uint32_t)(half + 127) << 23, other = (uint32_t)(whole - half + 127) << 23;
    float a, b;
    __builtin_memcpy(&a, &one, sizeof a);
    __builtin_memcpy(&b, &other, sizeof b);
    return x * a * b;
}

#include "kernels/vec_exp.h"

#endif

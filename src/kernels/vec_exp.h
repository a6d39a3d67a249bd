// SPDX-License-Identifier: Apache-2.0
// What is made of the operations of a vector type `vf` (kernels/vec.h, or the Hexagon program's),
// the same everywhere: each of them rounds once, so every type gives the same bits.
#ifndef ST_KERNELS_VEC_EXP_H
#define ST_KERNELS_VEC_EXP_H

static inline vf vf_zero(void) {
    return vf_set1(0.0f);
}

// e^x, at most 2 ulp off; 0 below -87.3 (no subnormals), infinity above 88.7, NaN stays NaN.
// x = n ln 2 + r with |r| <= ln 2 / 2, e^r by a polynomial (Cody and Waite's reduction in two
// steps).
static inline vf vf_exp(vf x) {
    vf n = vf_round(vf_mul(x, vf_set1(1.44269504f)));
    n = vf_max(vf_min(n, vf_set1(128.0f)), vf_set1(-126.0f));
    vf r = vf_fma(n, vf_set1(-0.693359375f), x);
    r = vf_fma(n, vf_set1(2.12194440e-4f), r);
    vf p = vf_set1(1.9875691500e-4f);
    p = vf_fma(p, r, vf_set1(1.3981999507e-3f));
    p = vf_fma(p, r, vf_set1(8.3334519073e-3f));
    p = vf_fma(p, r, vf_set1(4.1665795894e-2f));
    p = vf_fma(p, r, vf_set1(1.6666665459e-1f));
    p = vf_fma(p, r, vf_set1(5.0000001201e-1f));
    p = vf_add(vf_fma(p, vf_mul(r, r), r), vf_set1(1.0f));
    vf y = vf_scale2(p, n);
    y = vf_select(vf_lt(x, vf_set1(-87.3f)), vf_zero(), y);
    return vf_select(vf_lt(vf_set1(88.72f), x), vf_set1(__builtin_inff()), y);
}

#endif

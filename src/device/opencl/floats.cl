// SPDX-License-Identifier: Apache-2.0
// The vector type of kernels/activations.h here: one float. Every operation rounds once, as the
// host's. Behind this come kernels/vec_exp.h and kernels/activations.h.
#pragma OPENCL FP_CONTRACT OFF

#define INLINE static inline
#define __builtin_inff() INFINITY

typedef float vf;
typedef bool vm;

INLINE vf vf_set1(float x) {
    return x;
}
INLINE vf vf_add(vf a, vf b) {
    return a + b;
}
INLINE vf vf_sub(vf a, vf b) {
    return a - b;
}
INLINE vf vf_mul(vf a, vf b) {
    return a * b;
}
INLINE vf vf_fma(vf a, vf b, vf c) {
    return fma(a, b, c);
}
INLINE vf vf_max(vf a, vf b) { // b where one is NaN
    return a > b ? a : b;
}
INLINE vf vf_min(vf a, vf b) {
    return a < b ? a : b;
}
INLINE vf vf_abs(vf a) {
    return fabs(a);
}
INLINE vf vf_round(vf a) {
    return rint(a);
}
INLINE vm vf_lt(vf a, vf b) {
    return a < b;
}
INLINE vf vf_select(vm m, vf yes, vf no) {
    return m ? yes : no;
}
// x 2^n for whole n in [-126, 128], in two factors: 2^128 is no float
INLINE vf vf_scale2(vf x, vf n) {
    int whole = (int)n, low = whole >> 1;
    return x * as_float((low + 127) << 23) * as_float((whole - low + 127) << 23);
}

#ifdef DIVIDE_IN_STEPS
// For devices that do not round quotients correctly: Newton's iteration for 1 / b, then of the two
// floats around the quotient the one that leaves the smaller remainder, which fma gives exactly
// (Markstein 1990). Both are scaled into [1, 2) first; where the exponents are too far apart, or
// one number is no normal float, the device's own quotient has to do.
INLINE float divide_mantissas(float a, float b) {
    float r = 24.0f / 17.0f - 8.0f / 17.0f * b; // off by 1/17 at most
    for (int i = 0; i < 3; i++) r = fma(fma(-b, r, 1.0f), r, r);
    float q = a * r;
    q = fma(fma(-q, b, a), r, q);
    float rest = fma(-q, b, a);
    float next = as_float(as_int(q) + (rest > 0.0f ? 1 : -1));
    return fabs(fma(-next, b, a)) < fabs(rest) ? next : q;
}

INLINE vf vf_div(vf a, vf b) {
    const uint mantissa = 0x7fffffu, one = 0x3f800000u;
    uint x = as_uint(a), y = as_uint(b);
    int of_x = (int)(x >> 23 & 0xff), of_y = (int)(y >> 23 & 0xff), exponent = of_x - of_y;
    if (of_x == 0 || of_x == 255 || of_y == 0 || of_y == 255 || exponent > 120 || exponent < -120)
        return a / b;
    float q = divide_mantissas(as_float((x & mantissa) | one), as_float((y & mantissa) | one));
    return as_float((as_uint(q) + ((uint)exponent << 23)) | ((x ^ y) & 0x80000000u));
}
#else
INLINE vf vf_div(vf a, vf b) {
    return a / b;
}
#endif

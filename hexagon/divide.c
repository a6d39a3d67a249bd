// SPDX-License-Identifier: Apache-2.0
// Division of floats, which the processor has no instruction for: correctly rounded, so that it
// gives the host's bits.
//
// Quickly: Newton's iteration for 1/b, then the quotient is corrected by its remainder, which a
// fused multiply-add gives exactly (Markstein 1990). Of the two floats around a/b the one with the
// smaller remainder is the answer; a quotient of two floats is never half-way between two others.
#include "runtime.h"

#include <stdbool.h>

enum { BIAS = 127, MANTISSA_BITS = 23, SAFE_EXPONENT = 120 };
#define SIGN         0x80000000u
#define MANTISSA     0x7fffffu
#define INFINITE     0x7f800000u
#define NOT_A_NUMBER 0x7fc00000u

// 1/b for b in [1, 2), within a few units of the last place.
static float reciprocal(float b) {
    float r = 24.0f / 17.0f - 8.0f / 17.0f * b; // off by 1/17 at most
    for (int i = 0; i < 3; i++) {
        float error = __builtin_fmaf(-b, r, 1.0f);
        r = __builtin_fmaf(error, r, r);
    }
    return r;
}

// a / b for both in [1, 2).
static float divide_mantissas(float a, float b) {
    float r = reciprocal(b), q = a * r;
    q = __builtin_fmaf(__builtin_fmaf(-q, b, a), r, q);
    float rest = __builtin_fmaf(-q, b, a);
    float next = dsp_float(rest > 0.0f ? dsp_bits(q) + 1 : dsp_bits(q) - 1);
    float next_rest = __builtin_fmaf(-next, b, a);
    return __builtin_fabsf(next_rest) < __builtin_fabsf(rest) ? next : q;
}

float __hexagon_divsf3(float a, float b) {
    uint32_t x = dsp_bits(a), y = dsp_bits(b);
    int x_exponent = (int)(x >> MANTISSA_BITS & 0xff);
    int y_exponent = (int)(y >> MANTISSA_BITS & 0xff);
    int exponent = x_exponent - y_exponent;
    bool normal = x_exponent > 0 && x_exponent < 255 && y_exponent > 0 && y_exponent < 255;
    if (!normal || exponent > SAFE_EXPONENT || exponent < -SAFE_EXPONENT)
        return dsp_divide_slowly(a, b);
    const uint32_t one = (uint32_t)BIAS << MANTISSA_BITS;
    float q = divide_mantissas(dsp_float((x & MANTISSA) | one), dsp_float((y & MANTISSA) | one));
    return dsp_float((dsp_bits(q) + ((uint32_t)exponent << MANTISSA_BITS)) | ((x ^ y) & SIGN));
}

// A mantissa of 24 bits and its exponent, also of a subnormal.
static uint32_t take_apart(uint32_t bits, int *exponent) {
    uint32_t mantissa = bits & MANTISSA;
    *exponent = (int)(bits >> MANTISSA_BITS & 0xff);
    if (*exponent > 0) return mantissa | (MANTISSA + 1);
    int shift = __builtin_clz(mantissa) - 8;
    *exponent = 1 - shift;
    return mantissa << shift;
}

// quotient: 26 bits, the first of which is set and stands for 2^exponent; sticky: something is
// left below them.
static float round_quotient(uint32_t sign, uint32_t quotient, int exponent, bool sticky) {
    int shift = 2, biased = exponent + BIAS;
    if (biased >= 255) return dsp_float(sign | INFINITE);
    if (biased < 1) {
        shift = 3 - biased < 28 ? 3 - biased : 28;
        biased = 0;
    }
    uint32_t kept = quotient >> shift, rest = quotient & ((1u << shift) - 1);
    uint32_t half = 1u << (shift - 1);
    if (rest > half || (rest == half && (sticky || (kept & 1)))) kept++;
    // A mantissa that grew by one bit moves the exponent on by itself.
    uint32_t bits = biased ? ((uint32_t)biased << MANTISSA_BITS) + (kept - (MANTISSA + 1)) : kept;
    return dsp_float(sign | bits);
}

float dsp_divide_slowly(float a, float b) {
    uint32_t x = dsp_bits(a), y = dsp_bits(b), sign = (x ^ y) & SIGN;
    x &= ~SIGN;
    y &= ~SIGN;
    if (x > INFINITE || y > INFINITE || (x == INFINITE && y == INFINITE) || (x == 0 && y == 0))
        return dsp_float(NOT_A_NUMBER);
    if (x == INFINITE || y == 0) return dsp_float(sign | INFINITE);
    if (y == INFINITE || x == 0) return dsp_float(sign);
    int x_exponent, y_exponent;
    uint32_t left = take_apart(x, &x_exponent), divisor = take_apart(y, &y_exponent), quotient = 0;
    int exponent = x_exponent - y_exponent;
    if (left < divisor) {
        left <<= 1;
        exponent--;
    }
    for (int i = 0; i < 26; i++, left <<= 1) {
        quotient <<= 1;
        if (left < divisor) continue;
        left -= divisor;
        quotient |= 1;
    }
    return round_quotient(sign, quotient, exponent, left != 0);
}

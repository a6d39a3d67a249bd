// SPDX-License-Identifier: Apache-2.0
// Vocabularies are long, so e^x is computed in floats, of which compilers make vectors, and only
// added up in doubles.
#include "base/log_sum.h"

#include "base/half.h"

#include <math.h>

enum { BLOCK = 16 }; // logits at a time

static inline float greater_of(float a, float b) {
    return st_float_select(-(uint32_t)(a > b), a, b);
}

// e^x for x <= 0 as in kernels/vec_exp.h, at most 2 ulp off; 0 below -87; NaN stays NaN.
static inline float exp_of(float x) {
    const float shift = 0x1.8p23f; // with it added, a number has its whole part in its last bits
    float shifted = x * 1.44269504f + shift, n = shifted - shift;
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * (r * r) + r) + 1.0f;
    float power = p * st_float_from_bits((st_float_bits(shifted) + 127) << 23); // 2^n
    return st_float_from_bits(st_float_bits(power) & ~-(uint32_t)(x < -87.0f));
}

static float max_of(const float *logits, size_t n) {
    float lanes[BLOCK], most = -INFINITY;
    size_t whole = n / BLOCK * BLOCK;
    for (size_t i = 0; i < BLOCK; i++) lanes[i] = -INFINITY;
    for (size_t v = 0; v < whole; v += BLOCK)
        for (size_t i = 0; i < BLOCK; i++) lanes[i] = greater_of(logits[v + i], lanes[i]);
    for (size_t i = 0; i < BLOCK; i++) most = greater_of(lanes[i], most);
    for (size_t v = whole; v < n; v++) most = greater_of(logits[v], most);
    return most;
}

double st_log_sum(const float *logits, size_t n) {
    double lanes[BLOCK] = {0.0}, sum = 0.0;
    size_t whole = n / BLOCK * BLOCK;
    float most = max_of(logits, n);
    for (size_t v = 0; v < whole; v += BLOCK) {
        float powers[BLOCK];
        for (size_t i = 0; i < BLOCK; i++) powers[i] = exp_of(logits[v + i] - most);
        for (size_t i = 0; i < BLOCK; i++) lanes[i] += (double)powers[i];
    }
    for (size_t v = whole; v < n; v++) sum += (double)exp_of(logits[v] - most);
    for (size_t i = 0; i < BLOCK; i++) sum += lanes[i];
    return log(sum) + (double)most;
}

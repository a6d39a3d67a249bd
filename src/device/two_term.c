// SPDX-License-Identifier: Apache-2.0
#include "device/two_term.h"

#include "base/size.h"

#include <math.h>

enum { BLOCK = 64 };
static const float steps = 254.0f; // half of one is the most that rounding leaves: 127 of these

size_t st_two_term_quantize(const struct st_elementwise *elementwise, const float *x, size_t n,
                            float scale, uint8_t zero, uint8_t *q, uint8_t *rest) {
    size_t clipped = elementwise->quantize(x, n, scale, zero, q);
    float edge = 127.0f * scale;
    for (size_t at = 0; at < n; at += BLOCK) {
        float left[BLOCK];
        size_t here = st_min(BLOCK, n - at);
        for (size_t i = 0; i < here; i++) {
            float value = x[at + i];
            float error = value - scale * (float)(int8_t)(q[at + i] - zero);
            left[i] = fabsf(value) > edge ? 0.0f : error;
        }
        elementwise->quantize(left, here, scale / steps, zero, rest + at);
    }
    return clipped;
}

void st_two_term_join(const float *product, const float *rest, const float *bias, size_t n,
                      float *y) {
    for (size_t i = 0; i < n; i++) y[i] = product[i] + rest[i] / steps;
    for (size_t i = 0; i < n && bias; i++) y[i] += bias[i];
}

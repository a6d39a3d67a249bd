// SPDX-License-Identifier: Apache-2.0
// The definition.
#include "kernels/int16_rows.h"
#include "kernels/quantize_float.h"

#include <math.h>

enum { M = 4, WIDTH = 4 };

static int32_t product(uint32_t a, uint32_t b) {
    return (int16_t)a * (int16_t)b + (int16_t)(a >> 16) * (int16_t)(b >> 16);
}

void st_int16_tile_scalar(size_t k, const uint32_t *a, size_t a_row, const float *a_scale,
                          const uint32_t *b, const float *b_scale, float *c, size_t c_row) {
    for (size_t m = 0; m < M; m++)
        for (size_t lane = 0; lane < WIDTH; lane++) {
            float *out = c + m * c_row + lane;
            int32_t sum = 0;
            for (size_t i = 0; i < k; i++) sum += product(a[m * a_row + i], b[i * WIDTH + lane]);
            *out = fmaf((float)sum, a_scale[m] * b_scale[lane], *out);
        }
}

float st_int16_quantize_scalar(const float *x, size_t n, int max_q, int16_t *out) {
    float max = st_max_magnitude(x, n), factor = st_quantize_factor(max, (float)max_q);
    if (factor > 0.0f)
        for (size_t i = 0; i < n; i++) out[i] = (int16_t)st_round_to_int(x[i] * factor);
    else
        memset(out, 0, n * sizeof *out);
    return max / (float)max_q;
}

float st_int16_pairs_scalar(const float *x, const float *factor, const float *inverse, size_t n,
                            size_t width, uint32_t *pairs) {
    float largest = 0.0f;
    for (size_t i = 0; i < n; i++)
        for (size_t lane = 0; lane < width; lane++) {
            float q = x[i * width + lane] * factor[i] * inverse[lane], magnitude = fabsf(q);
            uint32_t *pair = &pairs[i / 2 * width + lane];
            if (magnitude > largest) largest = magnitude;
            uint32_t whole = magnitude <= ST_INT16_MAX_INPUT ? (uint32_t)st_round_to_int(q) : 0;
            *pair = i % 2 ? *pair | whole << 16 : whole & 0xffff;
        }
    return largest;
}

// SPDX-License-Identifier: Apache-2.0
// One block of an input in INT8, as QUANTIZE, and what that leaves of it, as REST, with the vectors
// that the including file is compiled for.
#include "kernels/nested_rows.h"
#include "kernels/quantize_float.h"

// All 128 elements, so that the compiler can make vectors of them.
void QUANTIZE(const float *restrict x, int8_t *restrict q, float *restrict scale,
              int16_t *restrict sums) {
    float max = st_max_magnitude(x, ST_NESTED_BLOCK);
    *scale = max / 127.0f;
    float inverse = st_quantize_factor(max, 127.0f);
    for (size_t g = 0; g < ST_NESTED_GROUPS; g++) {
        int32_t sum = 0;
        for (size_t i = g * ST_NESTED_GROUP; i < (g + 1) * ST_NESTED_GROUP; i++) {
            int32_t v = st_round_to_int(x[i] * inverse);
            sum += v;
            q[i] = (int8_t)v;
        }
        sums[g] = (int16_t)sum;
    }
}

void REST(const float *restrict x, const int8_t *restrict q, float scale, float *restrict rest) {
    for (size_t i = 0; i < ST_NESTED_BLOCK; i++) rest[i] = x[i] - scale * (float)q[i];
}

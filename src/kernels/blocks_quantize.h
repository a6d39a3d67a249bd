// SPDX-License-Identifier: Apache-2.0
// One part of an input in integers, as QUANTIZE, with the vectors that the including file is
// compiled for.
#include "kernels/blocks_rows.h"
#include "kernels/quantize_float.h"

void QUANTIZE(const float *restrict x, int8_t *restrict high, int8_t *restrict low,
              int16_t *restrict words, float *restrict scale, float *restrict sum,
              float *restrict half_sum) {
    enum { HALF = ST_BLOCKS_PART / 2 };
    int32_t q[ST_BLOCKS_PART], part_sum[2] = {0, 0};
    float max = st_max_magnitude(x, ST_BLOCKS_PART);
    float inverse = st_quantize_factor(max, (float)ST_BLOCKS_MAX_Q);
    for (size_t i = 0; i < ST_BLOCKS_PART; i++) q[i] = (int16_t)st_round_to_int(x[i] * inverse);
    for (size_t i = 0; i < ST_BLOCKS_PART; i++) high[i] = (int8_t)((q[i] + 64) >> 7);
    for (size_t i = 0; i < ST_BLOCKS_PART; i++) low[i] = (int8_t)(q[i] - 128 * high[i]);
    for (size_t i = 0; i < HALF; i++) words[i] = (int16_t)q[2 * i];
    for (size_t i = 0; i < HALF; i++) words[HALF + i] = (int16_t)q[2 * i + 1];
    for (size_t i = 0; i < HALF; i++) part_sum[0] += q[i];
    for (size_t i = HALF; i < ST_BLOCKS_PART; i++) part_sum[1] += q[i];
    *scale = max / (float)ST_BLOCKS_MAX_Q;
    half_sum[0] = *scale * (float)part_sum[0];
    half_sum[1] = *scale * (float)part_sum[1];
    *sum = *scale * (float)(part_sum[0] + part_sum[1]);
}

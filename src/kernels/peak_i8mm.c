// SPDX-License-Identifier: Apache-2.0
#include "kernels/peak_rows.h"

#include <arm_neon.h>

float st_peak_int8_i8mm(const void *data, size_t rounds) {
    enum { SUMS = 24 };
    int8x16_t a = vld1q_s8(data), b = a;
    int32x4_t sum[SUMS];
    _Pragma("GCC unroll 24") for (int i = 0; i < SUMS; i++) sum[i] = vdupq_n_s32(i);
    for (size_t r = 0; r < rounds; r++)
        _Pragma("GCC unroll 24") for (int i = 0; i < SUMS; i++) sum[i] = vmmlaq_s32(sum[i], a, b);
    _Pragma("GCC unroll 24") for (int i = 1; i < SUMS; i++) sum[0] = vaddq_s32(sum[0], sum[i]);
    return (float)vaddvq_s32(sum[0]);
}

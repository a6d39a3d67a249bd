// SPDX-License-Identifier: Apache-2.0
// What Armv8.0 has for bytes: two products fit 16 bits, whose pairs are added to sums of 32.
#include "kernels/peak_rows.h"

#include <arm_neon.h>

#define UNROLL _Pragma("GCC unroll 16")

float st_peak_int8_neon(const void *data, size_t rounds) {
    enum { SUMS = 16 };
    int8x8_t a = vld1_s8(data), b = a;
    int32x4_t sum[SUMS];
    UNROLL for (int i = 0; i < SUMS; i++) sum[i] = vdupq_n_s32(i);
    for (size_t r = 0; r < rounds; r++) UNROLL for (int i = 0; i < SUMS; i++) {
            __asm__ volatile("" : "+w"(a)); // products of it stay in the loop
            sum[i] = vpadalq_s16(sum[i], vmlal_s8(vmull_s8(a, b), b, a));
        }
    UNROLL for (int i = 1; i < SUMS; i++) sum[0] = vaddq_s32(sum[0], sum[i]);
    return (float)vaddvq_s32(sum[0]);
}

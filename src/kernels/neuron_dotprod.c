// SPDX-License-Identifier: Apache-2.0
#include "kernels/neuron_rows.h"

#include <arm_neon.h>
#include <string.h>

#define INLINE       static inline __attribute__((always_inline))
#define UNROLL       _Pragma("GCC unroll 4")
#define NEURON(name) st_neuron_##name##_dotprod

struct columns {
    int8x16_t w[4];
};

INLINE void add_64(int32x4_t sum[4], const int8x16_t w[4], const int8x16_t x[4]) {
    UNROLL for (size_t j = 0; j < 4; j++) sum[j] = vdotq_s32(sum[j], w[j], x[j]);
}

// Byte by byte, so that one instruction multiplies and adds all four.
INLINE struct columns columns_of(int8x16_t a, int8x16_t b, int8x16_t c, int8x16_t d) {
    int16x8_t ab0 = vreinterpretq_s16_s8(vzip1q_s8(a, b));
    int16x8_t ab1 = vreinterpretq_s16_s8(vzip2q_s8(a, b));
    int16x8_t cd0 = vreinterpretq_s16_s8(vzip1q_s8(c, d));
    int16x8_t cd1 = vreinterpretq_s16_s8(vzip2q_s8(c, d));
    return (struct columns){
        {vreinterpretq_s8_s16(vzip1q_s16(ab0, cd0)), vreinterpretq_s8_s16(vzip2q_s16(ab0, cd0)),
         vreinterpretq_s8_s16(vzip1q_s16(ab1, cd1)), vreinterpretq_s8_s16(vzip2q_s16(ab1, cd1))}};
}

INLINE void add_columns(int32x4_t sum[4], const struct columns *c, const int8_t *q) {
    int32_t four;
    memcpy(&four, q, sizeof four);
    int8x16_t numbers = vreinterpretq_s8_s32(vdupq_n_s32(four));
    UNROLL for (size_t z = 0; z < 4; z++) sum[z] = vdotq_s32(sum[z], c->w[z], numbers);
}

#include "kernels/neuron_arm.h"

// SPDX-License-Identifier: Apache-2.0
// Armv8.0: two products of bytes fit 16 bits (int8_neon.c).
#include "kernels/neuron_rows.h"

#include <arm_neon.h>

#define INLINE       static inline __attribute__((always_inline))
#define UNROLL       _Pragma("GCC unroll 4")
#define NEURON(name) st_neuron_##name##_neon

struct columns {
    int8x16_t a, b, c, d;
};

INLINE void add_32(int32x4_t sum[2], const int8x16_t w[2], const int8x16_t x[2]) {
    int16x8_t low = vmull_s8(vget_low_s8(w[0]), vget_low_s8(x[0]));
    int16x8_t high = vmull_high_s8(w[0], x[0]);
    low = vmlal_s8(low, vget_low_s8(w[1]), vget_low_s8(x[1]));
    high = vmlal_high_s8(high, w[1], x[1]);
    sum[0] = vpadalq_s16(sum[0], low);
    sum[1] = vpadalq_s16(sum[1], high);
}

INLINE void add_64(int32x4_t sum[4], const int8x16_t w[4], const int8x16_t x[4]) {
    add_32(sum, w, x);
    add_32(sum + 2, w + 2, x + 2);
}

INLINE struct columns columns_of(int8x16_t a, int8x16_t b, int8x16_t c, int8x16_t d) {
    return (struct columns){a, b, c, d};
}

INLINE void add_words(int32x4_t sum[2], int16x8_t v) {
    sum[0] = vaddw_s16(sum[0], vget_low_s16(v));
    sum[1] = vaddw_high_s16(sum[1], v);
}

// Two columns with their numbers.
INLINE void add_two(int32x4_t sum[4], int8x16_t a, int8x16_t b, const int8_t *q) {
    int8x16_t first = vdupq_n_s8(q[0]), second = vdupq_n_s8(q[1]);
    int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(first));
    int16x8_t high = vmull_high_s8(a, first);
    add_words(sum, vmlal_s8(low, vget_low_s8(b), vget_low_s8(second)));
    add_words(sum + 2, vmlal_high_s8(high, b, second));
}

INLINE void add_columns(int32x4_t sum[4], const struct columns *c, const int8_t *q) {
    add_two(sum, c->a, c->b, q);
    add_two(sum, c->c, c->d, q + 2);
}

#include "kernels/neuron_arm.h"

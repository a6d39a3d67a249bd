// SPDX-License-Identifier: Apache-2.0
// One row at once.
#ifndef ST_KERNELS_NESTED_INT8_ARM_H
#define ST_KERNELS_NESTED_INT8_ARM_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/nested_int8.h"

enum { LANES = 1, TOGETHER = 2 };

typedef uint8x16_t vb;
typedef int32x4_t vi;

static inline vb vb_load(const uint8_t *p) {
    return vld1q_u8(p);
}
static inline vb vb_flip(uint8_t mask, vb v) {
    return veorq_u8(v, vdupq_n_u8(mask));
}
static inline vb vb_select(uint8_t mask, vb a, vb b) {
    return vbslq_u8(vdupq_n_u8(mask), a, b);
}
#define vb_shl(v, n) vshlq_n_u8(v, n)
#define vb_shr(v, n) vshrq_n_u8(v, n)

struct grid {
    int16_t step[ST_NESTED_GROUPS], least[ST_NESTED_GROUPS];
};

static inline struct grid grid_of(const uint8_t *scales_at, const uint8_t *minima_at,
                                  const struct st_nested_int8_row *rows, int16_t middle) {
    struct grid grid;
    for (unsigned g = 0; g < ST_NESTED_GROUPS; g++) {
        int16_t minimum = (int16_t)((int8_t)minima_at[g] * 256);
        int16_t step = vqrdmulhh_s16((int16_t)(scales_at[g] << 7), rows->step);
        int32_t least = vqrdmulhh_s16(minimum, rows->minimum) - vqrdmulhh_s16(middle, step) + 16;
        grid.step[g] = step;
        grid.least[g] = (int16_t)(uint16_t)least;
    }
    return grid;
}

static inline int16x8_t words(uint8x16_t code, int16_t step, int16_t least) {
    int16x8_t at = vqrdmulhq_n_s16(vreinterpretq_s16_u8(code), step);
    return vshrq_n_s16(vaddq_s16(at, vdupq_n_s16(least)), 5);
}

static inline vb vb_weights(vb code, const struct grid *grid, unsigned g) {
    const uint8x16_t zero = vdupq_n_u8(0);
    int16x8_t low = words(vzip1q_u8(zero, code), grid->step[g], grid->least[g]);
    int16x8_t high = words(vzip2q_u8(zero, code), grid->step[g], grid->least[g]);
    int8x16_t w = vcombine_s8(vqmovn_s16(low), vqmovn_s16(high));
    return vreinterpretq_u8_s8(vmaxq_s8(w, vdupq_n_s8(-127)));
}

static inline vb vb_x(const uint8_t *p) {
    return vld1q_u8(p);
}
static inline vi vi_zero(void) {
    return vdupq_n_s32(0);
}
static inline void vi_rows(vi v, int32_t rows[LANES]) {
    rows[0] = vaddvq_s32(v);
}

#endif

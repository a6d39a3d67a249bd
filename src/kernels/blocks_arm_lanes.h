// SPDX-License-Identifier: Apache-2.0
// Panels of blocks on Arm, a row in each lane. The including file has dot_lane(sum, a, b, lane):
// sum[i] += a[4 i + j] * b[4 lane + j] for j in [0, 4), of signed bytes.
#include "kernels/blocks_arm.h"

typedef struct {
    int32x4_t high, low;
} dots;

INLINE dots dots_zero(void) {
    return (dots){vdupq_n_s32(0), vdupq_n_s32(0)};
}
INLINE void dots_add(dots *d, lanes w, const struct st_blocks_chunk *x, size_t first, size_t i,
                     int bits) {
    (void)bits;
    d->high = dot_lane(d->high, w, vld1q_s8(x->high + 4 * first + i / 4 * 16), i % 4);
    d->low = dot_lane(d->low, w, vld1q_s8(x->low + 4 * first + i / 4 * 16), i % 4);
}
INLINE floats dots_total(const dots *d, int bits) {
    (void)bits;
    return vcvtq_f32_s32(vaddq_s32(vshlq_n_s32(d->high, 7), d->low));
}

#include "kernels/blocks_body.h"

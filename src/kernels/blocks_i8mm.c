// SPDX-License-Identifier: Apache-2.0
// smmla multiplies 2 rows by 2 columns over 8 elements of k. The two columns are the halves of one
// input, so there are half as many products as with sdot, with any number of columns. A panel has
// rows 0 and 1, then rows 2 and 3, of 8 elements after another.
#include <arm_neon.h>
#include <stddef.h>

#include "kernels/blocks.h"

#define NAME(type)      st_blocks_##type##_i8mm
#define TRANSPOSE_CODES interleave_rows

enum { PANEL_COLUMNS = 4 };

static inline int32x4_t dot_add(int32x4_t sum, int8x16_t a, int8x16_t b) {
    return vdotq_s32(sum, a, b);
}

#include "kernels/blocks_arm.h"

typedef struct {
    int32x4_t of[2]; // rows 2 i and 2 i + 1: {row x high, row x low, next x high, next x low}
} dots;

INLINE dots dots_zero(void) {
    return (dots){{vdupq_n_s32(0), vdupq_n_s32(0)}};
}
INLINE void dots_add(dots *d, lanes w, const struct st_blocks_chunk *x, size_t first, size_t i,
                     int bits) {
    size_t at = 4 * first + i / 4 * 16; // of 16 elements, which the compiler loads once
    int64x2_t high = vreinterpretq_s64_s8(vld1q_s8(x->high + at));
    int64x2_t low = vreinterpretq_s64_s8(vld1q_s8(x->low + at));
    int64x2_t both = i % 4 < 2 ? vzip1q_s64(high, low) : vzip2q_s64(high, low);
    (void)bits;
    d->of[i % 2] = vmmlaq_s32(d->of[i % 2], w, vreinterpretq_s8_s64(both));
}
INLINE floats dots_total(const dots *d, int bits) {
    (void)bits;
    int32x4_t high = vuzp1q_s32(d->of[0], d->of[1]), low = vuzp2q_s32(d->of[0], d->of[1]);
    return vcvtq_f32_s32(vaddq_s32(vshlq_n_s32(high, 7), low));
}
// 16 bytes of four rows.
INLINE void interleave_rows(const unsigned char *from, size_t row_bytes, unsigned char *to) {
    uint64x2_t v[4];
    EACH_OF v[j] = vreinterpretq_u64_u8(vld1q_u8(from + j * row_bytes));
    vst1q_u8(to, vreinterpretq_u8_u64(vtrn1q_u64(v[0], v[1])));
    vst1q_u8(to + 16, vreinterpretq_u8_u64(vtrn1q_u64(v[2], v[3])));
    vst1q_u8(to + 32, vreinterpretq_u8_u64(vtrn2q_u64(v[0], v[1])));
    vst1q_u8(to + 48, vreinterpretq_u8_u64(vtrn2q_u64(v[2], v[3])));
}

#include "kernels/blocks_body.h"

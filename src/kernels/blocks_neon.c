// SPDX-License-Identifier: Apache-2.0
// Two products of signed bytes fit in 16 bits, as an input's have magnitudes of at most 127.
#include <arm_neon.h>
#include <stddef.h>
#include <string.h>

#include "kernels/blocks.h"

#define NAME(type) st_blocks_##type##_neon
#define QUANTIZE   st_blocks_quantize_neon

// Panels take as many instructions as rows.
enum { PANEL_COLUMNS = ST_BLOCKS_MAX_COLUMNS + 1 };

static inline int32x4_t dot_add(int32x4_t sum, int8x16_t a, int8x16_t b) {
    int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(b)), high = vmull_high_s8(a, b);
    return vpadalq_s16(sum, vpaddq_s16(low, high));
}
static inline int32x4_t dot_lane(int32x4_t sum, int8x16_t a, int8x16_t b, size_t lane) {
    int32_t four[4];
    memcpy(four, &b, sizeof four);
    return dot_add(sum, a, vreinterpretq_s8_s32(vdupq_n_s32(four[lane])));
}

#include "kernels/blocks_arm_lanes.h"
#include "kernels/blocks_quantize.h"

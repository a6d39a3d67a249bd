// SPDX-License-Identifier: Apache-2.0
#include <arm_neon.h>
#include <stddef.h>

#include "kernels/blocks.h"

#define NAME(type) st_blocks_##type##_dotprod

enum { PANEL_COLUMNS = 4 };

static inline int32x4_t dot_add(int32x4_t sum, int8x16_t a, int8x16_t b) {
    return vdotq_s32(sum, a, b);
}

// The same with the four bytes of b that `lane` names, a constant once the loop is unrolled.
static inline int32x4_t dot_lane(int32x4_t sum, int8x16_t a, int8x16_t b, size_t lane) {
    switch (lane) {
    case 0:
        return vdotq_laneq_s32(sum, a, b, 0);
    case 1:
        return vdotq_laneq_s32(sum, a, b, 1);
    case 2:
        return vdotq_laneq_s32(sum, a, b, 2);
    default:
        return vdotq_laneq_s32(sum, a, b, 3);
    }
}

#include "kernels/blocks_arm_lanes.h"

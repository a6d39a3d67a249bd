// SPDX-License-Identifier: Apache-2.0
#include <arm_neon.h>

#define NAME(type) st_blocks_##type##_dotprod

static inline int32x4_t dot_add(int32x4_t sum, int8x16_t a, int8x16_t b) {
    return vdotq_s32(sum, a, b);
}

#include "kernels/blocks_arm.h"

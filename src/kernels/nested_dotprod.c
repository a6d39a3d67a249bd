// SPDX-License-Identifier: Apache-2.0
#include "kernels/nested_arm.h"

#define NAME st_nested_dotprod

static inline vi vi_dot(vi sum, vb value, vb x) {
    return vdotq_s32(sum, vreinterpretq_s8_u8(value), vreinterpretq_s8_u8(x));
}

#include "kernels/nested_body.h"

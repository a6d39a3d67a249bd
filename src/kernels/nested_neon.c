// SPDX-License-Identifier: Apache-2.0
#include "kernels/nested_arm.h"

#define NAME st_nested_neon

static inline vi vi_dot(vi sum, vb value, vb x) {
    int8x16_t v = vreinterpretq_s8_u8(value), w = vreinterpretq_s8_u8(x);
    sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(v), vget_low_s8(w)));
    return vpadalq_s16(sum, vmull_high_s8(v, w));
}

#include "kernels/nested_body.h"

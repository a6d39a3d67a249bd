// SPDX-License-Identifier: Apache-2.0
#include "kernels/nested_int8_arm.h"

#define NAME    st_nested_int8_neon
#define PRODUCT st_nested_int8_product_neon

static inline void vb_store(uint8_t *p, vb v) {
    vst1q_u8(p, v);
}

static inline void store_vector(const uint8_t *from, int8_t *to) {
    for (unsigned half = 0; half < 2; half++) {
        uint32x4x4_t four = vld4q_u32((const void *)(from + 64 * half));
        for (unsigned q = 0; q < 4; q++) vst1q_u32((void *)(to + 64 * q + 16 * half), four.val[q]);
    }
}

static inline vi vi_dot(vi sum, vb weight, vb x) {
    int8x16_t w = vreinterpretq_s8_u8(weight), v = vreinterpretq_s8_u8(x);
    sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(w), vget_low_s8(v)));
    return vpadalq_s16(sum, vmull_high_s8(w, v));
}

#include "kernels/nested_int8_body.h"
#include "kernels/nested_int8_product.h"

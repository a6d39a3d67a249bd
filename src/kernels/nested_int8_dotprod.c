// SPDX-License-Identifier: Apache-2.0
#include "kernels/nested_int8_arm.h"

#define PRODUCT st_nested_int8_product_dotprod

static inline vi vi_dot(vi sum, vb weight, vb x) {
    return vdotq_s32(sum, vreinterpretq_s8_u8(weight), vreinterpretq_s8_u8(x));
}

#include "kernels/nested_int8_product.h"

// SPDX-License-Identifier: Apache-2.0
#include "kernels/nested_int8_256.h"

#define PRODUCT st_nested_int8_product_avxvnni

static inline vi vi_dot(vi sum, vb w, vb x) {
    return _mm256_dpbusd_avx_epi32(sum, x, w);
}

#include "kernels/nested_int8_product.h"

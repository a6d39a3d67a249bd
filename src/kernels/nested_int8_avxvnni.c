// SPDX-License-Identifier: Apache-2.0
#include "kernels/nested_int8_256.h"
#include "kernels/vnni_256.h"

#define PRODUCT st_nested_int8_product_avxvnni

static inline vi vi_dot(vi sum, vb w, vb x) {
    st_add_bytes(&sum, x, w);
    return sum;
}

#include "kernels/nested_int8_product.h"

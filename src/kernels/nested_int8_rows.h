// SPDX-License-Identifier: Apache-2.0
// The kernels of nested_int8.c's table.
#ifndef ST_KERNELS_NESTED_INT8_ROWS_H
#define ST_KERNELS_NESTED_INT8_ROWS_H

#include "kernels/nested_int8.h"

st_nested_int8_fn st_nested_int8_scalar;
st_nested_int8_fn st_nested_int8_avx512, st_nested_int8_avx2, st_nested_int8_neon;

st_nested_int8_product_fn st_nested_int8_product_scalar;
st_nested_int8_product_fn st_nested_int8_product_avx512vnni, st_nested_int8_product_avx2;
st_nested_int8_product_fn st_nested_int8_product_avxvnni;
st_nested_int8_product_fn st_nested_int8_product_dotprod, st_nested_int8_product_neon;

// Zeros for the elements of a half panel from k on.
void st_nested_int8_pad(size_t k, int8_t *to);

#endif

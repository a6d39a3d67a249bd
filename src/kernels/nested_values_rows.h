// SPDX-License-Identifier: Apache-2.0
// The kernels of nested_values.c's table.
#ifndef ST_KERNELS_NESTED_VALUES_ROWS_H
#define ST_KERNELS_NESTED_VALUES_ROWS_H

#include "kernels/nested_values.h"

st_nested_floats_fn st_nested_floats_scalar, st_nested_floats_avx2;
st_nested_bf16_fn st_nested_bf16_scalar, st_nested_bf16_avx512bf16;

#endif

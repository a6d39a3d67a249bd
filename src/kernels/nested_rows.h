// SPDX-License-Identifier: Apache-2.0
// The kernels of nested.c's table.
#ifndef ST_KERNELS_NESTED_ROWS_H
#define ST_KERNELS_NESTED_ROWS_H

#include "kernels/nested.h"

st_nested_fn st_nested_scalar;
st_nested_fn st_nested_avx2, st_nested_avxvnni, st_nested_avx512vnni;
st_nested_fn st_nested_neon, st_nested_dotprod;

st_nested_quantize_fn st_nested_quantize_plain; // on Arm the compiler's NEON
st_nested_quantize_fn st_nested_quantize_avx2, st_nested_quantize_avx512;
st_nested_rest_fn st_nested_rest_plain, st_nested_rest_avx2, st_nested_rest_avx512;

#endif

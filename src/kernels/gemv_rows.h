// SPDX-License-Identifier: Apache-2.0
// The functions behind the rows of gemv.c: every type for every instruction set.
#ifndef ST_KERNELS_GEMV_ROWS_H
#define ST_KERNELS_GEMV_ROWS_H

#include "kernels/dequantize_rows.h"
#include "kernels/gemv.h"

#define DECLARE(id, type, isa) st_gemv_fn st_gemv_##type##_##isa;
ST_DEQUANTIZE_TYPES(DECLARE, scalar)
ST_DEQUANTIZE_TYPES(DECLARE, avx2)
ST_DEQUANTIZE_TYPES(DECLARE, avx512)
ST_DEQUANTIZE_TYPES(DECLARE, neon)
#undef DECLARE

#endif

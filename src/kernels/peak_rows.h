// SPDX-License-Identifier: Apache-2.0
// The functions behind the rows of peak.c. A number at the end: independent sums.
#ifndef ST_KERNELS_PEAK_ROWS_H
#define ST_KERNELS_PEAK_ROWS_H

#include "kernels/peak.h"

st_peak_fn st_peak_f32_scalar, st_peak_f32_avx2_10, st_peak_f32_avx2_12, st_peak_f32_avx512_16;
st_peak_fn st_peak_f32_avx512_24, st_peak_f32_neon_16, st_peak_f32_neon_24;
st_peak_fn st_peak_bf16_avx512bf16, st_peak_bf16_amx;
st_peak_fn st_peak_int8_avx512vnni, st_peak_int8_amx, st_peak_int8_avx2, st_peak_int4_avx2;
st_peak_fn st_peak_int16_avx512vnni, st_peak_int16_avx2;
st_peak_fn st_peak_int8_avxvnni, st_peak_int16_avxvnni;
st_peak_fn st_peak_int8_neon, st_peak_int8_dotprod, st_peak_int8_i8mm;
st_peak_read_fn st_peak_read_scalar, st_peak_read_avx2, st_peak_read_avx512, st_peak_read_neon;

#endif

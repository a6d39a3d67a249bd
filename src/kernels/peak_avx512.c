// SPDX-License-Identifier: Apache-2.0
#define PEAK_F32_FEW   st_peak_f32_avx512_16
#define PEAK_F32_MANY  st_peak_f32_avx512_24
#define PEAK_FEW_SUMS  16
#define PEAK_MANY_SUMS 24
#define PEAK_READ      st_peak_read_avx512
#include "kernels/peak_body.h"

// SPDX-License-Identifier: Apache-2.0
#define NAME(type)       st_gemv_##type##_avx512
#define DEQUANTIZE(type) st_dequantize_##type##_avx512
#include "kernels/gemv_body.h"

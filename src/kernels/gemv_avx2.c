// SPDX-License-Identifier: Apache-2.0
#define NAME(type)       st_gemv_##type##_avx2
#define DEQUANTIZE(type) st_dequantize_##type##_avx2
#include "kernels/gemv_body.h"

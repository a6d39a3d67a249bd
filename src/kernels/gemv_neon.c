// SPDX-License-Identifier: Apache-2.0
#define NAME(type)       st_gemv_##type##_neon
#define DEQUANTIZE(type) st_dequantize_##type##_neon
#include "kernels/gemv_body.h"

// SPDX-License-Identifier: Apache-2.0
#define NAME(type) st_dequantize_##type##_avx512
#include "kernels/dequantize_body.h"

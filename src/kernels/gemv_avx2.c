// SPDX-License-Identifier: Apache-2.0
#define NAME(type)   st_gemv_##type##_avx2
#define EXPAND(type) st_expand_##type##_avx2
#include "kernels/gemv_body.h"

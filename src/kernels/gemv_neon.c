// SPDX-License-Identifier: Apache-2.0
#define NAME(type)   st_gemv_##type##_neon
#define EXPAND(type) st_expand_##type##_neon
#include "kernels/gemv_body.h"

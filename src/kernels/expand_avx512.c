// SPDX-License-Identifier: Apache-2.0
#define NAME(type) st_expand_##type##_avx512
#include "kernels/expand_body.h"

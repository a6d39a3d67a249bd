// SPDX-License-Identifier: Apache-2.0
#define EXPAND_VECTORS
#define NAME(type) st_expand_##type##_neon
#include "kernels/expand_body.h"

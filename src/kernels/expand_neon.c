// SPDX-License-Identifier: Apache-2.0
#define NAME(type) st_expand_##type##_neon
#include "kernels/expand_body.h"

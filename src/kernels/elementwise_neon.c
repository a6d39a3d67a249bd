// SPDX-License-Identifier: Apache-2.0
#define ELEMENTWISE      st_elementwise_neon
#define ELEMENTWISE_NAME "elementwise_neon"
#define ELEMENTWISE_ISA  ST_CPU_NEON
#include "kernels/elementwise_body.h"

// SPDX-License-Identifier: Apache-2.0
#define ELEMENTWISE      st_elementwise_avx2
#define ELEMENTWISE_NAME "elementwise_avx2"
#define ELEMENTWISE_ISA  ST_CPU_AVX2
#include "kernels/elementwise_body.h"

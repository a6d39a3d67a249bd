// SPDX-License-Identifier: Apache-2.0
#define ELEMENTWISE      st_elementwise_avx512
#define ELEMENTWISE_NAME "elementwise_avx512"
#define ELEMENTWISE_ISA  ST_CPU_AVX512
#include "kernels/elementwise_body.h"

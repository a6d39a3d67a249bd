// SPDX-License-Identifier: Apache-2.0
#define ATTENTION       st_attention_avx2
#define ATTENTION_NAME  "attention_avx2"
#define ELEMENTWISE_ISA ST_CPU_AVX2
#include "kernels/attention_body.h"

// SPDX-License-Identifier: Apache-2.0
#define ATTENTION       st_attention_avx512
#define ATTENTION_NAME  "attention_avx512"
#define ELEMENTWISE_ISA ST_CPU_AVX512
#include "kernels/attention_body.h"

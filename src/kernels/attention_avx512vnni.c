// SPDX-License-Identifier: Apache-2.0
#define ATTENTION       st_attention_avx512vnni
#define ATTENTION_NAME  "attention_avx512vnni"
#define ELEMENTWISE_ISA (ST_CPU_AVX512 | ST_CPU_AVX512VNNI)
#include "kernels/attention_body.h"

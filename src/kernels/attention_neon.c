// SPDX-License-Identifier: Apache-2.0
#define ATTENTION       st_attention_neon
#define ATTENTION_NAME  "attention_neon"
#define ELEMENTWISE_ISA ST_CPU_NEON
#include "kernels/attention_body.h"

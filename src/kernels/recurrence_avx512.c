// SPDX-License-Identifier: Apache-2.0
#define RECURRENCE      st_recurrence_avx512
#define RECURRENCE_NAME "recurrence_avx512"
#define RECURRENCE_ISA  ST_CPU_AVX512
#include "kernels/recurrence_body.h"

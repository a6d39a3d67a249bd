// SPDX-License-Identifier: Apache-2.0
#define RECURRENCE      st_recurrence_avx2
#define RECURRENCE_NAME "recurrence_avx2"
#define RECURRENCE_ISA  ST_CPU_AVX2
#include "kernels/recurrence_body.h"

// SPDX-License-Identifier: Apache-2.0
#define RECURRENCE      st_recurrence_neon
#define RECURRENCE_NAME "recurrence_neon"
#define RECURRENCE_ISA  ST_CPU_NEON
#include "kernels/recurrence_body.h"

// SPDX-License-Identifier: Apache-2.0
// The functions behind the rows of recurrence.c, for every instruction set.
#ifndef ST_KERNELS_RECURRENCE_ROWS_H
#define ST_KERNELS_RECURRENCE_ROWS_H

#include "kernels/recurrence.h"

extern const struct st_recurrence st_recurrence_scalar, st_recurrence_avx2, st_recurrence_avx512,
    st_recurrence_neon;

#endif

// SPDX-License-Identifier: Apache-2.0
// The functions behind the rows of elementwise.c and attention.c, for every instruction set.
#ifndef ST_KERNELS_ELEMENTWISE_ROWS_H
#define ST_KERNELS_ELEMENTWISE_ROWS_H

#include "kernels/attention.h"
#include "kernels/elementwise.h"

extern const struct st_elementwise st_elementwise_scalar, st_elementwise_avx2,
    st_elementwise_avx512, st_elementwise_neon;
extern const struct st_attention st_attention_scalar, st_attention_avx2, st_attention_avx512,
    st_attention_avx512vnni, st_attention_neon;

#endif

// SPDX-License-Identifier: Apache-2.0
// Kernels with the mistakes that are made: the checks must find every one.
#ifndef DSP_WRONG_H
#define DSP_WRONG_H

#include "check.h"

dsp_product_fn wrong_row, wrong_last_k, wrong_narrow_sums, wrong_start;
check_pack_fn wrong_padding, wrong_row_sums;
check_divide_fn wrong_truncated, wrong_unrefined;
check_hmx_fn wrong_tile_row, wrong_last_tile, wrong_tile_column;
check_quantize_fn wrong_not_clamped, wrong_half_away, wrong_by_quotient, wrong_count;
float wrong_root(float x);
dsp_rmsnorm_fn wrong_order, wrong_epsilon, wrong_last_element;

#endif

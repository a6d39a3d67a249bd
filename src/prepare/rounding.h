// SPDX-License-Identifier: Apache-2.0
// What rounding a linear's weights to nested groups of one precision alone costs, and the weights
// that it leaves.
#ifndef ST_PREPARE_ROUNDING_H
#define ST_PREPARE_ROUNDING_H

#include "base/thread.h"
#include "model/weights.h"

struct st_rounder;

// For linears of at most `tallest` outputs and `widest` inputs. `pool` is borrowed until close.
// STINT_E_NOMEM.
stint_status st_rounder_open(size_t tallest, size_t widest, struct st_pool *pool,
                             struct st_rounder **rounder);
void st_rounder_close(struct st_rounder *rounder); // accepts NULL

// Rounds the first ST_PANEL_ROWS of every `stride` times as many rows, with `importance` [n_in] as
// the weight of a squared error. Returns the sum of these errors as a share of the weights' energy.
// rounded: [n_out, n_in] in F16, or NULL.
double st_round_linear(struct st_rounder *rounder, const struct st_linear_weight *linear,
                       const float *importance, unsigned bits, size_t stride, uint16_t *rounded);

#endif

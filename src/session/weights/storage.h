// SPDX-License-Identifier: Apache-2.0
// Measures how fast rows of a checkpoint's linears are multiplied, for the memory plan.
#ifndef ST_SESSION_WEIGHTS_STORAGE_H
#define ST_SESSION_WEIGHTS_STORAGE_H

#include "base/thread.h"
#include "model/model.h"

// Multiplies one token's input with rows as the model's first feed-forward block has them, for
// about `seconds`, over memory[0, bytes), whatever is there. *per_second: bytes of weights, 0 where
// not even one row fits. STINT_E_NOMEM.
stint_status st_storage_rows(const struct stint_model *model, struct st_pool *pool,
                             const unsigned char *memory, size_t bytes, double seconds,
                             double *per_second);

#endif

// SPDX-License-Identifier: Apache-2.0
// Linears of BitNet b1.58 (Ma et al. 2024) as files store them, in ways that no kernel reads. In
// folders: four rows in a byte, [n_out / 4, n_in], whose number i has the rows from i * n_out / 4
// on, with one scale of all weights beside them; or weights in training, which are rounded to -1, 0
// and 1 times the mean of their magnitudes. In GGUF: I2_S (format/tensors.h). They are rewritten
// once, as blocks of TQ2_0 where rows are whole blocks, which rounds the scale to F16, or as F32.
#ifndef ST_MODEL_TERNARY_H
#define ST_MODEL_TERNARY_H

#include "base/arena.h"
#include "format/tensors.h"
#include "model/config.h"

#include <stdbool.h>

// The linear `name`, as the file calls its weight, which the config says is [n_out, n_in]. *tensor:
// [n_out, n_in] in the arena (data NULL while measuring). *found false: it is not stored in this
// form. STINT_E_FORMAT if it has another shape.
stint_status st_ternary_rewrite(const struct st_tensors *tensors, enum st_ternary form,
                                const char *name, uint32_t n_out, uint32_t n_in,
                                struct st_arena *arena, struct st_tensor *tensor, bool *found);

#endif

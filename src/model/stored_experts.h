// SPDX-License-Identifier: Apache-2.0
// Experts as folders of gpt-oss store them, in ways that no kernel reads: matrices by input,
// [experts, n_in, rows], or MXFP4 with codes apart from their scales, [experts, rows, n_in / 32,
// 16] and [experts, rows, n_in / 32]. They are rewritten once, as rows of BF16 (F16, F32) or as
// GGUF's MXFP4 blocks.
#ifndef ST_MODEL_STORED_EXPERTS_H
#define ST_MODEL_STORED_EXPERTS_H

#include "base/arena.h"
#include "format/tensors.h"

#include <stdbool.h>

// Gate and up share one tensor, whose rows take turns: row r of one is row first + step * r.
struct st_stored_experts {
    const char *name; // of the matrices; that of codes and scales has an ending
    uint32_t n_experts, n_out, n_in, first, step;
};

// *tensor: [experts, n_out, n_in] in the arena (data NULL while measuring). *found false: there is
// neither form. STINT_E_FORMAT if it has another shape.
stint_status st_stored_experts_rewrite(const struct st_tensors *tensors,
                                       const struct st_stored_experts *experts,
                                       struct st_arena *arena, struct st_tensor *tensor,
                                       bool *found);

#endif

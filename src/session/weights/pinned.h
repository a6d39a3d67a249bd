// SPDX-License-Identifier: Apache-2.0
// Nested weights under a memory bound: the codes up to the highest precision of the session's
// precision schedule are pinned (docs/MEMORY.md).
#ifndef ST_SESSION_KEPT_H
#define ST_SESSION_KEPT_H

#include "base/arena.h"
#include "base/loader.h"
#include "model/model.h"

struct st_pinned {
    unsigned bits; // 0: nothing is pinned
    struct st_arena arena;
    struct st_nested_weight *weights; // [nested linears of the model]
};

uint64_t st_pinned_bytes(const struct stint_model *model, unsigned bits);
// Borrows the model until close. STINT_E_IO, E_FORMAT, E_NOMEM.
stint_status st_pinned_open(const struct stint_model *model, unsigned bits,
                            struct st_loader *loader, struct st_pinned *pinned);
void st_pinned_close(struct st_pinned *pinned); // accepts a zeroed one

#endif

// SPDX-License-Identifier: Apache-2.0
// Nested weights that stay in memory under a bound (docs/MEMORY.md): the parts that
// session/weights/pins.h names. They are read and checked when a session opens.
#ifndef ST_SESSION_PINNED_H
#define ST_SESSION_PINNED_H

#include "base/arena.h"
#include "base/loader.h"
#include "session/weights/pins.h"

struct st_pinned {
    struct st_arena arena;
    struct st_nested_weight *weights; // [nested linears of the model], as far as they are pinned
};

uint64_t st_pinned_bytes(const struct stint_model *model, const struct st_pins *pins);
// Borrows the model until close. STINT_E_IO, E_FORMAT, E_NOMEM.
stint_status st_pinned_open(const struct stint_model *model, const struct st_pins *pins,
                            struct st_loader *loader, struct st_pinned *pinned);
void st_pinned_close(struct st_pinned *pinned); // accepts a zeroed one

#endif

// SPDX-License-Identifier: Apache-2.0
// Packed INT8 rows under a memory bound that a model's files do not hold: they are made of nested
// codes (device/weight_set.h), of which parts are pinned and the others streamed (weights/pins.h).
#ifndef ST_SESSION_MADE_H
#define ST_SESSION_MADE_H

#include "device/mirror.h"
#include "device/weight_set.h"
#include "model/model.h"

struct st_bounded;
struct st_panels;
struct st_run;

// As many groups as lie side by side, until they are released.
struct st_made {
    int8_t *panels;          // in the arena of the bounded session; NULL: files hold packed rows
    struct st_slice *slices; // [groups of a linear / those that lie side by side]
    struct st_mirror mirror; // of the arena
    // The slice that is held, if any, and what it and the pinned parts hold of a linear.
    bool holds;
    size_t piece;
    uint32_t slice;
    struct st_weight_set set;
};

void st_made_lay_out(const struct stint_model *model, struct st_made *made, struct st_arena *arena);

// As struct st_weight_source has them.
stint_status st_made_acquire(const struct st_run *run, struct st_linear_id id,
                             struct st_linear_op_part *part);
void st_made_release(const struct st_run *run, struct st_linear_id id,
                     const struct st_linear_op_part *part);

// The parts of a nested linear's panels that are not pinned come from strips, in their order;
// returns those that follow. first and n of *panels are set.
const unsigned char *const *st_made_panels(const struct st_bounded *bounded,
                                           const struct st_nested_weight *weight,
                                           unsigned precision, const unsigned char *const *strips,
                                           struct st_panels *panels);

#endif

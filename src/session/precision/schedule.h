// SPDX-License-Identifier: Apache-2.0
// Precision schedules as they are named and kept: "none", "uniform:B", a quality (quality.h), or
// a file that `stint schedule` wrote for this package (docs/FORMAT.md).
#ifndef ST_SESSION_SCHEDULE_H
#define ST_SESSION_SCHEDULE_H

#include "session/precision/learned.h"
#include "session/precision/schedule_json.h"

struct st_precision_schedule {
    stint_precision precision;
    struct st_learned *learned; // chooses one per prompt instead; or NULL
};

// NULL is "none". STINT_E_ARG, E_IO, E_FORMAT, E_UNSUPPORTED with the reason: a file of another
// package, precisions that this one has not, steps out of order.
stint_status st_schedule_load(const struct stint_model *model, const char *spec,
                              struct st_precision_schedule *schedule);
void st_schedule_close(struct st_precision_schedule *schedule); // accepts a zeroed one

// Of `precision`, and of all that `learned` may choose instead, unless it is NULL.
struct st_needs st_schedule_needs(const struct stint_model *model, const stint_precision *precision,
                                  const struct st_learned *learned);

#endif

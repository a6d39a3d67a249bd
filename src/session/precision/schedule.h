// SPDX-License-Identifier: Apache-2.0
// Precision schedules as they are named and kept: "none", "uniform:B", or a file that `stint
// schedule` wrote for this package (docs/FORMAT.md).
#ifndef ST_SESSION_SCHEDULE_H
#define ST_SESSION_SCHEDULE_H

#include "base/json.h"
#include "session/precision/learned.h"
#include "session/precision/precision.h"

struct st_precision_schedule {
    stint_precision precision;
    struct st_learned *learned; // chooses one per prompt instead; or NULL
};

// NULL is "none". STINT_E_ARG, E_IO, E_FORMAT, E_UNSUPPORTED with the reason: a file of another
// package, precisions that this one has not, steps out of order.
stint_status st_schedule_load(const struct stint_model *model, const char *spec,
                              struct st_precision_schedule *schedule);
void st_schedule_close(struct st_precision_schedule *schedule); // accepts a zeroed one

// What a schedule runs: nested weights of at most `bits`, 0: none; whether the tokens after the
// prompt take INT8 ones too.
struct st_needs {
    unsigned bits;
    bool int8_steps;
};

// Of `precision`, and of all that `learned` may choose instead, unless it is NULL.
struct st_needs st_schedule_needs(const struct stint_model *model, const stint_precision *precision,
                                  const struct st_learned *learned);

// {"prefill": p0, "decode": [[p, start], ...]}; and back, checked. STINT_E_FORMAT, E_ARG.
json_t *st_schedule_describe(const stint_precision *precision);

stint_status st_schedule_parse(const struct stint_model *model, const json_t *json,
                               stint_precision *precision);

// Writes a file that st_schedule_load() reads for the same package. STINT_E_IO, E_NOMEM.
stint_status st_schedule_write(const struct stint_model *model, const stint_precision *precision,
                               const char *path);

// Which package a schedule belongs to, 16 hexadecimal digits; of other models zeros.
enum { ST_FINGERPRINT_BYTES = 17 };
void st_schedule_fingerprint(const struct stint_model *model, char text[ST_FINGERPRINT_BYTES]);
// Its "package" must be this one. STINT_E_ARG, E_FORMAT.
stint_status st_schedule_check_owner(const struct stint_model *model, const json_t *json);

#endif

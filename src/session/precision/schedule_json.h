// SPDX-License-Identifier: Apache-2.0
// A precision schedule as JSON, and the package that it belongs to.
#ifndef ST_SESSION_SCHEDULE_JSON_H
#define ST_SESSION_SCHEDULE_JSON_H

#include "base/json.h"
#include "session/precision/precision.h"

// {"prefill": p0, "decode": [[p, start], ...]}; and back, checked. STINT_E_FORMAT, E_ARG.
json_t *st_schedule_describe(const stint_precision *precision);

stint_status st_schedule_parse(const struct stint_model *model, const json_t *json,
                               stint_precision *precision);

// Writes a file that st_schedule_load() (schedule.h) reads for the same package. STINT_E_IO,
// E_NOMEM.
stint_status st_schedule_write(const struct stint_model *model, const stint_precision *precision,
                               const char *path);

// Which package a schedule belongs to, 16 hexadecimal digits; of other models zeros.
enum { ST_FINGERPRINT_BYTES = 17 };
void st_schedule_fingerprint(const struct stint_model *model, char text[ST_FINGERPRINT_BYTES]);
// Its "package" must be this one. STINT_E_ARG, E_FORMAT.
stint_status st_schedule_check_owner(const struct stint_model *model, const json_t *json);

#endif

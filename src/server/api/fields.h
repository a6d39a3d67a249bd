// SPDX-License-Identifier: Apache-2.0
// Typed members of a request's objects. Absent or null: *out keeps its default and the call
// succeeds. A wrong type or a value out of range is refused with 400 and the field's name.
#ifndef ST_SERVER_FIELDS_H
#define ST_SERVER_FIELDS_H

#include "server/api/problem.h"

#include <jansson.h>

// The member, or NULL if it is absent or null. Borrows from `object`.
const json_t *st_field(const json_t *object, const char *name);

bool st_field_int(const json_t *object, const char *name, int64_t min, int64_t max, int64_t *out,
                  struct st_problem *problem);
bool st_field_uint(const json_t *object, const char *name, uint32_t min, uint32_t max,
                   uint32_t *out, struct st_problem *problem);
bool st_field_real(const json_t *object, const char *name, double min, double max, float *out,
                   struct st_problem *problem);
bool st_field_bool(const json_t *object, const char *name, bool *out, struct st_problem *problem);
// Borrows from `object`.
bool st_field_string(const json_t *object, const char *name, const char **out,
                     struct st_problem *problem);

// The type of a value, in words of JSON.
const char *st_field_type(const json_t *value);

#endif

// SPDX-License-Identifier: Apache-2.0
// JSON files from outside, read with jansson: duplicate keys and trailing text are refused, errors
// name file and line.
#ifndef ST_BASE_JSON_H
#define ST_BASE_JSON_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>

// New reference in *json (json_decref it). `name` stands in error texts. STINT_E_FORMAT,
// STINT_E_NOMEM.
stint_status st_json_parse(const char *name, const void *data, size_t bytes, json_t **json);

// The same of what Python's json module writes: numbers that JSON does not have, Infinity,
// -Infinity and NaN, become null.
stint_status st_json_parse_python(const char *name, const void *data, size_t bytes, json_t **json);

// Typed members of an object. Absent or null: *out keeps the default that it holds and the call
// succeeds; another type, a non-integer or a value out of [min, max]: STINT_E_FORMAT naming the
// key.
stint_status st_json_int(const json_t *object, const char *key, int64_t min, int64_t max,
                         int64_t *out);
stint_status st_json_number(const json_t *object, const char *key, double min, double max,
                            double *out);
stint_status st_json_bool(const json_t *object, const char *key, bool *out);
// Borrows from `object`.
stint_status st_json_string(const json_t *object, const char *key, const char **out);

#endif

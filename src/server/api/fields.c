// SPDX-License-Identifier: Apache-2.0
#include "server/api/fields.h"

const json_t *st_field(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

const char *st_field_type(const json_t *value) {
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",        [JSON_NULL] = "null",
    };
    return value != NULL ? names[json_typeof(value)] : "nothing";
}

static bool refuse_type(const json_t *value, const char *name, const char *wanted,
                        struct st_problem *problem) {
    return st_refuse(problem, 400, name, "'%s' is %s; it must be %s", name, st_field_type(value),
                     wanted);
}

bool st_field_int(const json_t *object, const char *name, int64_t min, int64_t max, int64_t *out,
                  struct st_problem *problem) {
    const json_t *value = st_field(object, name);
    if (value == NULL) return true;
    if (!json_is_integer(value)) return refuse_type(value, name, "an integer", problem);
    int64_t number = json_integer_value(value);
    if (number < min || number > max)
        return st_refuse(problem, 400, name, "'%s' is %lld; it must be from %lld to %lld", name,
                         (long long)number, (long long)min, (long long)max);
    *out = number;
    return true;
}

bool st_field_uint(const json_t *object, const char *name, uint32_t min, uint32_t max,
                   uint32_t *out, struct st_problem *problem) {
    int64_t number = *out;
    if (!st_field_int(object, name, min, max, &number, problem)) return false;
    *out = (uint32_t)number;
    return true;
}

bool st_field_real(const json_t *object, const char *name, double min, double max, float *out,
                   struct st_problem *problem) {
    const json_t *value = st_field(object, name);
    if (value == NULL) return true;
    if (!json_is_number(value)) return refuse_type(value, name, "a number", problem);
    double number = json_number_value(value);
    if (!(number >= min && number <= max))
        return st_refuse(problem, 400, name, "'%s' is %g; it must be from %g to %g", name, number,
                         min, max);
    *out = (float)number;
    return true;
}

bool st_field_bool(const json_t *object, const char *name, bool *out, struct st_problem *problem) {
    const json_t *value = st_field(object, name);
    if (value == NULL) return true;
    if (!json_is_boolean(value)) return refuse_type(value, name, "true or false", problem);
    *out = json_is_true(value);
    return true;
}

bool st_field_string(const json_t *object, const char *name, const char **out,
                     struct st_problem *problem) {
    const json_t *value = st_field(object, name);
    if (value == NULL) return true;
    if (!json_is_string(value)) return refuse_type(value, name, "a string", problem);
    *out = json_string_value(value);
    return true;
}

// SPDX-License-Identifier: Apache-2.0
// Typed access over jansson, which bounds the depth (2048) and refuses invalid UTF-8 and numbers
// beyond 64 bits.
#include "base/json.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

stint_status st_json_parse(const char *name, const void *data, size_t bytes, json_t **json) {
    json_error_t error;
    errno = 0;
    json_t *value =
        json_loadb(bytes ? data : "", bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    // jansson has no code for it: it reads an invalid token, sees no error, or drops a character.
    if (errno == ENOMEM) {
        json_decref(value);
        return st_fail(STINT_E_NOMEM, "%s: not enough memory to read %zu bytes of JSON", name,
                       bytes);
    }
    if (!value)
        return st_fail(STINT_E_FORMAT, "%s: line %d: not valid JSON: %s", name, error.line,
                       error.text);
    *json = value;
    return STINT_OK;
}

// The length of a number's name at `text`, or 0.
static size_t named_number(const char *text, size_t bytes) {
    static const char *const names[] = {"-Infinity", "Infinity", "NaN"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (n <= bytes && memcmp(text, names[i], n) == 0) return n;
    }
    return 0;
}

stint_status st_json_parse_python(const char *name, const void *data, size_t bytes, json_t **json) {
    static const char null[] = "null";
    const char *text = data;
    bool quoted = false;
    size_t n = 0;
    char *out =
        bytes <= SIZE_MAX / 2 - 2 ? malloc(2 * bytes + 1) : NULL; // of 3 characters at most 4
    if (!out) return st_fail(STINT_E_NOMEM, "%s: no memory to read %zu bytes of JSON", name, bytes);
    for (size_t i = 0; i < bytes;) {
        size_t skipped = quoted ? 0 : named_number(text + i, bytes - i);
        if (skipped) {
            memcpy(out + n, null, 4);
            n += 4;
            i += skipped;
            continue;
        }
        if (text[i] == '"') quoted = !quoted;
        if (quoted && text[i] == '\\' && i + 1 < bytes) out[n++] = text[i++];
        out[n++] = text[i++];
    }
    stint_status status = st_json_parse(name, out, n, json);
    free(out);
    return status;
}

// The member, or NULL where it is absent or null.
static const json_t *member(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

stint_status st_json_int(const json_t *object, const char *key, int64_t min, int64_t max,
                         int64_t *out) {
    const json_t *value = member(object, key);
    if (!value) return STINT_OK;
    if (!json_is_integer(value)) return st_fail(STINT_E_FORMAT, "'%s' is not an integer", key);
    int64_t number = json_integer_value(value);
    if (number < min || number > max)
        return st_fail(STINT_E_FORMAT, "'%s' is %lld: expected %lld..%lld", key, (long long)number,
                       (long long)min, (long long)max);
    *out = number;
    return STINT_OK;
}

stint_status st_json_number(const json_t *object, const char *key, double min, double max,
                            double *out) {
    const json_t *value = member(object, key);
    if (!value) return STINT_OK;
    if (!json_is_number(value)) return st_fail(STINT_E_FORMAT, "'%s' is not a number", key);
    double number = json_number_value(value);
    if (!(number >= min && number <= max))
        return st_fail(STINT_E_FORMAT, "'%s' is %g: expected %g..%g", key, number, min, max);
    *out = number;
    return STINT_OK;
}

stint_status st_json_bool(const json_t *object, const char *key, bool *out) {
    const json_t *value = member(object, key);
    if (!value) return STINT_OK;
    if (!json_is_boolean(value)) return st_fail(STINT_E_FORMAT, "'%s' is not true or false", key);
    *out = json_is_true(value);
    return STINT_OK;
}

stint_status st_json_string(const json_t *object, const char *key, const char **out) {
    const json_t *value = member(object, key);
    if (!value) return STINT_OK;
    if (!json_is_string(value)) return st_fail(STINT_E_FORMAT, "'%s' is not a string", key);
    if (memchr(json_string_value(value), 0, json_string_length(value)))
        return st_fail(STINT_E_FORMAT, "'%s' holds a NUL character", key);
    *out = json_string_value(value);
    return STINT_OK;
}

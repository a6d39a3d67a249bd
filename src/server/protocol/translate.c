// SPDX-License-Identifier: Apache-2.0
// What translations share.
#include "server/api/fields.h"
#include "server/api/protocol.h"

bool st_protocol_copy(const json_t *from, const char *const (*names)[2], size_t n, json_t *to) {
    for (size_t i = 0; i < n; i++) {
        const json_t *value = st_field(from, names[i][0]);
        if (value != NULL && json_object_set(to, names[i][1], (json_t *)value) != 0) return false;
    }
    return true;
}

static bool is_empty(const json_t *value) {
    return json_is_false(value) || (json_is_string(value) && json_string_length(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

bool st_protocol_refuse(const json_t *body, const char *const *names, size_t n,
                        struct st_problem *problem) {
    for (size_t i = 0; i < n; i++) {
        const json_t *value = st_field(body, names[i]);
        if (value != NULL && !is_empty(value))
            return st_refuse(problem, 400, names[i], "'%s' is not supported", names[i]);
    }
    return true;
}

bool st_protocol_no_memory(struct st_problem *problem) {
    return st_refuse(problem, 503, NULL, "not enough memory");
}

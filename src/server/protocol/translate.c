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

bool st_protocol_no_memory(struct st_problem *problem) {
    return st_refuse(problem, 503, NULL, "not enough memory");
}

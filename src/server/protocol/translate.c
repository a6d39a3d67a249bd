// SPDX-License-Identifier: Apache-2.0
// What translations share.
#include "server/api/fields.h"
#include "server/api/protocol.h"

#include <string.h>

bool st_protocol_copy(const json_t *from, const char *const (*names)[2], size_t n, json_t *to) {
    for (size_t i = 0; i < n; i++) {
        const json_t *value = st_field(from, names[i][0]);
        if (value != NULL && json_object_set(to, names[i][1], (json_t *)value) != 0) return false;
    }
    return true;
}

bool st_protocol_continue(json_t *chat, struct st_problem *problem) {
    const json_t *messages = json_object_get(chat, "messages");
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const json_t *content = json_object_get(last, "content");
    const char *role = json_string_value(json_object_get(last, "role"));
    const char *text = json_string_value(content);
    if (json_array_size(content) == 1) // a block or part
        text = json_string_value(json_object_get(json_array_get(content, 0), "text"));
    if (role == NULL || strcmp(role, "assistant") != 0 || text == NULL || *text == 0 ||
        st_field(last, "tool_calls") != NULL)
        return true;
    return (json_object_set_new(last, "content", json_string(text)) == 0 &&
            json_object_set_new(chat, "continue_final_message", json_true()) == 0) ||
           st_protocol_no_memory(problem);
}

bool st_protocol_no_memory(struct st_problem *problem) {
    return st_refuse(problem, 503, NULL, "not enough memory");
}

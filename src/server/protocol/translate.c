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

const char *st_protocol_type(const json_t *object) {
    const char *type = json_string_value(json_object_get(object, "type"));
    return type != NULL ? type : "";
}

bool st_protocol_append(json_t *list, json_t *item, struct st_problem *problem) {
    return json_array_append_new(list, item) == 0 || st_protocol_no_memory(problem);
}

static json_t *new_list(json_t *chat, const char *name, struct st_problem *problem) {
    json_t *list = json_array();
    if (list != NULL && json_object_set_new(chat, name, list) == 0) return list;
    st_protocol_no_memory(problem);
    return NULL;
}

json_t *st_protocol_messages(const json_t *system, json_t *chat, struct st_problem *problem) {
    json_t *messages = new_list(chat, "messages", problem);
    if (messages == NULL || system == NULL) return messages;
    json_t *first = json_pack("{s:s, s:O}", "role", "system", "content", system);
    return st_protocol_append(messages, first, problem) ? messages : NULL;
}

bool st_protocol_tools(const json_t *body, const char *type, const char *parameters, json_t *chat,
                       struct st_problem *problem) {
    const json_t *given = st_field(body, "tools");
    json_t *tools = new_list(chat, "tools", problem);
    if (tools == NULL) return false;
    for (size_t i = 0; i < json_array_size(given); i++) {
        const json_t *tool = json_array_get(given, i);
        const char *its = st_protocol_type(tool);
        if (*its != 0 && strcmp(its, type) != 0)
            return st_refuse(problem, 400, "tools", "tools of type '%.40s' are not supported", its);
        json_t *made =
            json_pack("{s:s, s:{s:O?, s:O*, s:O*}}", "type", "function", "function", "name",
                      json_object_get(tool, "name"), "description", st_field(tool, "description"),
                      "parameters", st_field(tool, parameters));
        if (!st_protocol_append(tools, made, problem)) return false;
    }
    return true;
}

bool st_protocol_no_memory(struct st_problem *problem) {
    return st_refuse(problem, 503, NULL, "not enough memory");
}

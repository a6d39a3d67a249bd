// SPDX-License-Identifier: Apache-2.0
#include "server/api/calls.h"

#include <stdlib.h>
#include <string.h>

static json_t *call_schema(const json_t *tool) {
    json_t *function = json_object_get(tool, "function");
    json_t *parameters = json_object_get(function, "parameters");
    json_t *arguments =
        json_is_object(parameters) ? json_incref(parameters) : json_pack("{s:s}", "type", "object");
    return json_pack("{s:s, s:{s:{s:O}, s:o}, s:[s, s], s:b}", "type", "object", "properties",
                     "name", "const", json_object_get(function, "name"), "arguments", arguments,
                     "required", "name", "arguments", "additionalProperties", 0);
}

stint_status st_calls_schema(const struct st_request *request, json_t **schema) {
    *schema = NULL;
    if (request->tool_choice != ST_TOOLS_REQUIRED) return STINT_OK;
    json_t *choices = json_array();
    bool ok = choices != NULL;
    for (size_t i = 0; ok && i < json_array_size(request->tools); i++) {
        const json_t *tool = json_array_get(request->tools, i);
        const json_t *name = json_object_get(json_object_get(tool, "function"), "name");
        if (request->tool != NULL && strcmp(json_string_value(name), request->tool) != 0) continue;
        ok = json_array_append_new(choices, call_schema(tool)) == 0;
    }
    if (ok && json_array_size(choices) == 1)
        *schema = json_incref(json_array_get(choices, 0));
    else if (ok)
        *schema = json_pack("{s:O}", "anyOf", choices);
    json_decref(choices);
    return *schema != NULL ? STINT_OK : st_fail(STINT_E_NOMEM, "no memory for the tools' schema");
}

// Takes {"name", "arguments"} as the only call; an answer that was cut off stays text.
static stint_status find_required(struct st_choice *choice) {
    size_t n;
    const char *text = st_choice_answer(choice, &n);
    json_t *call = json_loadb(text, n, 0, NULL);
    const char *name = json_string_value(json_object_get(call, "name"));
    const json_t *arguments = json_object_get(call, "arguments");
    if (name == NULL || !json_is_object(arguments)) {
        json_decref(call);
        return STINT_OK;
    }
    struct st_tool_call *made = calloc(1, sizeof *made);
    if (made != NULL) {
        made->name = strdup(name);
        made->arguments = json_dumps(arguments, JSON_COMPACT);
        choice->calls = (struct st_tool_calls){.calls = made, .n = 1};
    }
    json_decref(call);
    if (made == NULL || made->name == NULL || made->arguments == NULL)
        return st_fail(STINT_E_NOMEM, "not enough memory for the call");
    return STINT_OK;
}

stint_status st_calls_find(const struct st_request *request, const struct st_chat *chat,
                           struct st_choice *choice) {
    if (request->tool_choice == ST_TOOLS_NONE) return STINT_OK;
    if (request->tool_choice == ST_TOOLS_REQUIRED) return find_required(choice);
    size_t n;
    const char *text = st_choice_answer(choice, &n);
    struct st_tool_calls calls = {0};
    ST_TRY(st_tool_calls_parse(chat, text, n, request->tools, &calls));
    while (request->one_call && calls.n > 1) {
        calls.n--;
        free(calls.calls[calls.n].name);
        free(calls.calls[calls.n].arguments);
    }
    choice->calls = calls;
    return STINT_OK;
}

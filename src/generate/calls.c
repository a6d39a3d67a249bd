// SPDX-License-Identifier: Apache-2.0
#include "generate/calls.h"

#include <stdlib.h>
#include <string.h>

const char *st_tools_name(const json_t *tool) {
    return json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
}

static stint_status check_tool(const json_t *tool, size_t i) {
    const char *type = json_string_value(json_object_get(tool, "type"));
    const json_t *parameters = json_object_get(json_object_get(tool, "function"), "parameters");
    const char *name = st_tools_name(tool);
    if (type == NULL || strcmp(type, "function") != 0)
        return st_fail(STINT_E_ARG, "tool %zu: 'type' must be \"function\"", i);
    if (name == NULL || *name == 0 || strlen(name) > 64)
        return st_fail(STINT_E_ARG, "tool %zu: 'function.name' must be a text of 1 to 64 bytes", i);
    if (parameters != NULL && !json_is_null(parameters) && !json_is_object(parameters))
        return st_fail(STINT_E_ARG, "tool %zu: 'function.parameters' must be a JSON schema", i);
    return STINT_OK;
}

stint_status st_tools_check(const json_t *list) {
    for (size_t i = 0; i < json_array_size(list); i++)
        ST_TRY(check_tool(json_array_get(list, i), i));
    return STINT_OK;
}

bool st_tools_have(const json_t *list, const char *name) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(st_tools_name(json_array_get(list, i)), name) == 0) return true;
    return false;
}

static json_t *call_schema(const json_t *tool) {
    json_t *function = json_object_get(tool, "function");
    json_t *parameters = json_object_get(function, "parameters");
    json_t *arguments =
        json_is_object(parameters) ? json_incref(parameters) : json_pack("{s:s}", "type", "object");
    return json_pack("{s:s, s:{s:{s:O}, s:o}, s:[s, s], s:b}", "type", "object", "properties",
                     "name", "const", json_object_get(function, "name"), "arguments", arguments,
                     "required", "name", "arguments", "additionalProperties", 0);
}

stint_status st_calls_schema(const struct st_tools *tools, json_t **schema) {
    *schema = NULL;
    if (tools->choice != ST_TOOLS_REQUIRED) return STINT_OK;
    json_t *choices = json_array();
    bool ok = choices != NULL;
    for (size_t i = 0; ok && i < json_array_size(tools->list); i++) {
        const json_t *tool = json_array_get(tools->list, i);
        if (tools->name != NULL && strcmp(st_tools_name(tool), tools->name) != 0) continue;
        ok = json_array_append_new(choices, call_schema(tool)) == 0;
    }
    if (ok && json_array_size(choices) == 1)
        *schema = json_incref(json_array_get(choices, 0));
    else if (ok)
        *schema = json_pack("{s:O}", "anyOf", choices);
    json_decref(choices);
    return *schema != NULL ? STINT_OK : st_fail(STINT_E_NOMEM, "no memory for the tools' schema");
}

bool st_calls_marks_special(const struct stint_tokenizer *tokenizer, bool tools, bool reasons) {
    if (tools || !reasons || tokenizer == NULL) return tools;
    int32_t id = st_tokenizer_find(tokenizer, ST_REASONING_CLOSE);
    return id >= 0 && st_tokenizer_is_special(tokenizer, id);
}

// Takes {"name", "arguments"} as the only call; an answer that was cut off stays text.
static stint_status find_required(const char *answer, size_t n, struct st_tool_calls *calls) {
    json_t *call = json_loadb(answer, n, 0, NULL);
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
        *calls = (struct st_tool_calls){.calls = made, .n = 1};
    }
    json_decref(call);
    if (made != NULL && made->name != NULL && made->arguments != NULL) return STINT_OK;
    st_tool_calls_free(calls);
    return st_fail(STINT_E_NOMEM, "not enough memory for the call");
}

stint_status st_calls_find(const struct st_tools *tools, const struct st_chat *chat,
                           const char *answer, size_t n, struct st_tool_calls *calls) {
    struct st_tool_calls found = {0};
    if (tools->choice == ST_TOOLS_REQUIRED)
        ST_TRY(find_required(answer, n, &found));
    else if (tools->choice == ST_TOOLS_AUTO)
        ST_TRY(st_tool_calls_parse(chat, answer, n, tools->list, &found));
    while (tools->one_call && found.n > 1) {
        found.n--;
        free(found.calls[found.n].name);
        free(found.calls[found.n].arguments);
    }
    *calls = found;
    return STINT_OK;
}

// SPDX-License-Identifier: Apache-2.0
#include "generate/calls.h"

#include "chat/harmony.h"
#include "chat/reasoning.h"
#include "tokenizer/parts.h"

#include <stdio.h>
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

json_t *st_tools_find(const json_t *list, const char *name) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(st_tools_name(json_array_get(list, i)), name) == 0)
            return json_array_get(list, i);
    return NULL;
}

bool st_tools_have(const json_t *list, const char *name) {
    return st_tools_find(list, name) != NULL;
}

// Puts `prefix` in front of the references of a schema that was the root. False: no memory.
static bool move_refs(json_t *schema, const char *prefix) {
    static const char *const data[] = {"const", "enum", "default", "examples"};
    const char *key;
    json_t *value;
    size_t i;
    bool ok = true;
    json_array_foreach(schema, i, value) ok = ok && move_refs(value, prefix);
    json_object_foreach(schema, key, value) {
        const char *ref = strcmp(key, "$ref") == 0 ? json_string_value(value) : NULL;
        bool is_data = false;
        for (size_t k = 0; k < sizeof data / sizeof *data; k++)
            is_data = is_data || strcmp(key, data[k]) == 0;
        if (ref && *ref == '#') {
            json_t *moved = json_sprintf("%s%s", prefix, ref + 1);
            ok = ok && moved && json_string_set(value, json_string_value(moved)) == 0;
            json_decref(moved);
        } else if (!is_data) {
            ok = ok && move_refs(value, prefix);
        }
    }
    return ok;
}

// place: where the schema will stand.
static json_t *call_schema(const json_t *tool, const char *place) {
    json_t *function = json_object_get(tool, "function");
    json_t *parameters = json_object_get(function, "parameters");
    json_t *arguments = json_is_object(parameters) ? json_deep_copy(parameters)
                                                   : json_pack("{s:s}", "type", "object");
    char prefix[96];
    snprintf(prefix, sizeof prefix, "%s/properties/arguments", place);
    if (arguments && !move_refs(arguments, prefix)) {
        json_decref(arguments);
        return NULL;
    }
    return json_pack("{s:s, s:{s:{s:O}, s:o}, s:[s, s], s:b}", "type", "object", "properties",
                     "name", "const", json_object_get(function, "name"), "arguments", arguments,
                     "required", "name", "arguments", "additionalProperties", 0);
}

// One call of any of the tools.
static json_t *any_schema(const struct st_tools *tools, const char *place) {
    json_t *choices = json_array();
    bool ok = choices != NULL;
    for (size_t i = 0; ok && i < json_array_size(tools->list); i++) {
        const json_t *tool = json_array_get(tools->list, i);
        char inside[64];
        if (tools->name != NULL && strcmp(st_tools_name(tool), tools->name) != 0) continue;
        snprintf(inside, sizeof inside, "%s/anyOf/%zu", place, json_array_size(choices));
        ok = json_array_append_new(choices, call_schema(tool, inside)) == 0;
    }
    if (ok) return json_pack("{s:o}", "anyOf", choices);
    json_decref(choices);
    return NULL;
}

stint_status st_calls_schema(const struct st_tools *tools, json_t **schema) {
    *schema = NULL;
    if (tools->choice != ST_TOOLS_REQUIRED) return STINT_OK;
    *schema = tools->several
                  ? json_pack("{s:s, s:i, s:i, s:o}", "type", "array", "minItems", 1, "maxItems",
                              ST_TOOL_CALLS_MAX, "items", any_schema(tools, "#/items"))
                  : any_schema(tools, "#");
    return *schema != NULL ? STINT_OK : st_fail(STINT_E_NOMEM, "no memory for the tools' schema");
}

static bool is_special(const struct stint_tokenizer *tokenizer, const char *text) {
    int32_t id = st_tokenizer_find(tokenizer, text);
    return id >= 0 && st_tokenizer_is_special(tokenizer, id);
}

bool st_calls_marks_special(const struct stint_tokenizer *tokenizer, bool tools, bool reasons) {
    const char *template = tokenizer ? st_tokenizer_chat_template(tokenizer) : NULL;
    if (st_harmony_is_spoken(template)) return false; // they become text that all here read
    if (tools || !reasons || tokenizer == NULL) return tools;
    const struct st_renamed_mark *renamed = st_reasoning_renamed(template);
    for (; renamed && renamed->token; renamed++)
        if (is_special(tokenizer, renamed->token)) return true;
    return is_special(tokenizer, ST_REASONING_CLOSE);
}

static stint_status add_required(const json_t *call, struct st_tool_calls *calls) {
    const char *name = json_string_value(json_object_get(call, "name"));
    const json_t *arguments = json_object_get(call, "arguments");
    if (name == NULL || !json_is_object(arguments)) return STINT_OK;
    struct st_tool_call *made = &calls->calls[calls->n++];
    made->name = strdup(name);
    made->arguments = json_dumps(arguments, JSON_COMPACT);
    if (made->name != NULL && made->arguments != NULL) return STINT_OK;
    return st_fail(STINT_E_NOMEM, "not enough memory for the call");
}

// Takes {"name", "arguments"}, or an array of those; an answer that was cut off stays text.
static stint_status find_required(const char *answer, size_t n, struct st_tool_calls *calls) {
    json_t *json = json_loadb(answer, n, 0, NULL);
    size_t n_calls = json_is_array(json) ? json_array_size(json) : 1;
    stint_status status = STINT_OK;
    calls->calls = calloc(n_calls + 1, sizeof *calls->calls);
    if (calls->calls == NULL) status = st_fail(STINT_E_NOMEM, "not enough memory for the call");
    for (size_t i = 0; i < n_calls && status == STINT_OK; i++)
        status = add_required(json_is_array(json) ? json_array_get(json, i) : json, calls);
    json_decref(json);
    if (status != STINT_OK || calls->n == 0) st_tool_calls_free(calls);
    return status;
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

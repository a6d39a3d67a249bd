// SPDX-License-Identifier: Apache-2.0
// The marks are those of Hermes, which st_tool_calls_parse finds in any answer.
#include "chat/tool_text.h"

#include "base/buffer.h"

#include <stdlib.h>
#include <string.h>

static stint_status no_memory(void) {
    return st_fail(STINT_E_NOMEM, "not enough memory for the conversation");
}

static stint_status put(struct st_bytes *text, const char *piece) {
    return st_bytes_append(text, piece, strlen(piece));
}

static stint_status put_json(struct st_bytes *text, const json_t *value) {
    char *json = json_dumps(value, JSON_ENCODE_ANY);
    if (!json) return no_memory();
    stint_status status = put(text, json);
    free(json);
    return status;
}

static stint_status describe(const json_t *tools, struct st_bytes *text) {
    size_t i;
    json_t *tool;
    ST_TRY(put(text, "You can call functions. They are described here as JSON, one per line:\n"
                     "<tools>\n"));
    json_array_foreach(tools, i, tool) {
        ST_TRY(put_json(text, tool));
        ST_TRY(put(text, "\n"));
    }
    return put(text, "</tools>\n\nTo call one, answer with its name and its arguments as JSON:\n"
                     "<tool_call>\n{\"name\": \"NAME\", \"arguments\": {...}}\n</tool_call>");
}

// The text of an assistant's message: what it said, then its calls.
static stint_status write_calls(const json_t *calls, struct st_bytes *text) {
    size_t i;
    json_t *call;
    json_array_foreach(calls, i, call) {
        const json_t *function = json_object_get(call, "function");
        json_t *shown = json_pack("{s:O?, s:O?}", "name", json_object_get(function, "name"),
                                  "arguments", json_object_get(function, "arguments"));
        if (!shown) return no_memory();
        stint_status status = put(text, text->count > 0 ? "\n<tool_call>\n" : "<tool_call>\n");
        if (status == STINT_OK) status = put_json(text, shown);
        json_decref(shown);
        ST_TRY(status);
        ST_TRY(put(text, "\n</tool_call>"));
    }
    return STINT_OK;
}

static stint_status write_result(const char *content, struct st_bytes *text) {
    ST_TRY(put(text, text->count > 0 ? "\n<tool_response>\n" : "<tool_response>\n"));
    ST_TRY(put(text, content));
    return put(text, "\n</tool_response>");
}

// Appends a message with this text, or gives the text to the last message if `extend`.
static stint_status add(json_t *list, const char *role, const struct st_bytes *text, bool extend) {
    json_t *content = json_stringn(text->count > 0 ? text->data : "", text->count);
    size_t n = json_array_size(list);
    if (!content) return no_memory();
    bool ok = extend ? json_object_set_new(json_array_get(list, n - 1), "content", content) == 0
                     : json_array_append_new(
                           list, json_pack("{s:s, s:o}", "role", role, "content", content)) == 0;
    return ok ? STINT_OK : no_memory();
}

// A message after `last`, whose role was `before` before it was changed.
static stint_status change(const json_t *message, const char *before, json_t *list,
                           struct st_bytes *text) {
    const char *role = json_string_value(json_object_get(message, "role"));
    const char *content = json_string_value(json_object_get(message, "content"));
    const json_t *calls = json_object_get(message, "tool_calls");
    if (strcmp(role, "tool") == 0) {
        bool extend = before && strcmp(before, "tool") == 0; // results of parallel calls
        const json_t *last = json_array_get(list, json_array_size(list) - 1);
        if (extend) ST_TRY(put(text, json_string_value(json_object_get(last, "content"))));
        ST_TRY(write_result(content ? content : "", text));
        return add(list, "user", text, extend);
    }
    if (json_array_size(calls) == 0)
        return json_array_append(list, (json_t *)message) == 0 ? STINT_OK : no_memory();
    ST_TRY(put(text, content ? content : ""));
    ST_TRY(write_calls(calls, text));
    return add(list, role, text, false);
}

// The description stands behind the conversation's own system text.
static stint_status begin(const json_t *plain, const json_t *tools, json_t *list, size_t *from,
                          struct st_bytes *text) {
    const json_t *first = json_array_get(plain, 0);
    const char *role = json_string_value(json_object_get(first, "role"));
    const char *content = json_string_value(json_object_get(first, "content"));
    bool system = role && strcmp(role, "system") == 0;
    *from = 0;
    if (json_array_size(tools) == 0) return STINT_OK;
    if (system && content && *content) {
        ST_TRY(put(text, content));
        ST_TRY(put(text, "\n\n"));
    }
    *from = system ? 1 : 0;
    ST_TRY(describe(tools, text));
    return add(list, "system", text, false);
}

stint_status st_tool_text_write(const json_t *plain, const json_t *tools, bool calls,
                                json_t **changed) {
    struct st_bytes text = {0};
    json_t *list = json_array();
    const char *before = NULL;
    size_t from = 0;
    if (!list) return no_memory();
    stint_status status = begin(plain, tools, list, &from, &text);
    for (size_t i = from; i < json_array_size(plain) && status == STINT_OK; i++) {
        const json_t *message = json_array_get(plain, i);
        text.count = 0;
        if (calls)
            status = change(message, before, list, &text);
        else if (json_array_append(list, (json_t *)message) != 0)
            status = no_memory();
        before = json_string_value(json_object_get(message, "role"));
    }
    st_bytes_free(&text);
    if (status != STINT_OK) {
        json_decref(list);
        return status;
    }
    *changed = list;
    return STINT_OK;
}

// SPDX-License-Identifier: Apache-2.0
#include "chat/messages.h"

#include "base/buffer.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_MESSAGES = 65536 };

static stint_status no_memory(void) {
    return st_fail(STINT_E_NOMEM, "not enough memory for the conversation");
}

static bool is_role(const json_t *message, const char *role) {
    const char *own = json_string_value(json_object_get(message, "role"));
    return own && strcmp(own, role) == 0;
}

// Sets object[key] to `value`, which it takes over.
static stint_status put(json_t *object, const char *key, json_t *value) {
    return value && json_object_set_new(object, key, value) == 0 ? STINT_OK : no_memory();
}

// ---- content

static stint_status add_part(const json_t *part, size_t i, struct st_bytes *text) {
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *words = json_object_get(part, "text");
    if (!type) return st_fail(STINT_E_ARG, "message %zu: a part of its content has no type", i);
    if (strcmp(type, "text") != 0)
        return st_fail(STINT_E_UNSUPPORTED,
                       "message %zu: content of type '%.40s': only text is supported", i, type);
    if (!json_is_string(words))
        return st_fail(STINT_E_ARG, "message %zu: a text part has no text", i);
    if (text->count) ST_TRY(st_bytes_append(text, "\n", 1));
    return st_bytes_append(text, json_string_value(words), json_string_length(words));
}

static stint_status join_parts(json_t *message, const json_t *parts, size_t i) {
    struct st_bytes text = {0};
    stint_status status = st_bytes_append(&text, "", 0);
    size_t k;
    json_t *part;
    json_array_foreach(parts, k, part) {
        if (status == STINT_OK) status = add_part(part, i, &text);
    }
    if (status == STINT_OK) status = put(message, "content", json_stringn(text.data, text.count));
    st_bytes_free(&text);
    return status;
}

static stint_status normalize_content(json_t *message, size_t i) {
    const json_t *content = json_object_get(message, "content");
    if (!content) return put(message, "content", json_null());
    if (json_is_array(content)) return join_parts(message, content, i);
    if (json_is_string(content) || json_is_null(content)) return STINT_OK;
    return st_fail(STINT_E_ARG, "message %zu: content is neither text nor parts", i);
}

// ---- calls

// Arguments that are the text of an object become that object. *call is replaced by a copy, since
// the caller's object must not change.
static stint_status normalize_call(json_t *calls, size_t k, size_t i) {
    const json_t *call = json_array_get(calls, k);
    const json_t *function = json_object_get(call, "function");
    const json_t *arguments = json_object_get(function, "arguments");
    if (!json_is_string(json_object_get(function, "name")))
        return st_fail(STINT_E_ARG, "message %zu: call %zu has no function name", i, k);
    if (!json_is_string(arguments)) return STINT_OK;
    json_t *object = json_loadb(json_string_value(arguments), json_string_length(arguments),
                                JSON_ALLOW_NUL, NULL);
    if (!json_is_object(object)) { // "" and the like: the template sees the text
        json_decref(object);
        return STINT_OK;
    }
    json_t *named = json_copy((json_t *)function), *copy = json_copy((json_t *)call);
    stint_status status = named ? put(named, "arguments", object) : no_memory();
    if (!named) json_decref(object);
    if (status == STINT_OK && copy) status = put(copy, "function", json_incref(named));
    if (status == STINT_OK) // takes over `copy` in any case
        status =
            copy && json_array_set_new(calls, k, json_incref(copy)) == 0 ? STINT_OK : no_memory();
    json_decref(named);
    json_decref(copy);
    return status;
}

static stint_status normalize_calls(json_t *message, size_t i) {
    const json_t *calls = json_object_get(message, "tool_calls");
    if (!calls) return STINT_OK;
    if (!json_is_array(calls) || !is_role(message, "assistant"))
        return st_fail(STINT_E_ARG,
                       "message %zu: tool_calls must be an array of an assistant message", i);
    if (json_array_size(calls) == 0) {
        json_object_del(message, "tool_calls");
        return STINT_OK;
    }
    json_t *copy = json_copy((json_t *)calls);
    ST_TRY(put(message, "tool_calls", copy));
    for (size_t k = 0; k < json_array_size(copy); k++) ST_TRY(normalize_call(copy, k, i));
    return STINT_OK;
}

// ---- messages

static void drop_nulls(json_t *message) {
    const char *key;
    void *next;
    json_t *value;
    json_object_foreach_safe(message, next, key, value) {
        if (json_is_null(value) && strcmp(key, "content") != 0) json_object_del(message, key);
    }
}

static stint_status normalize_message(json_t *message, size_t i) {
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    size_t known = 0;
    while (known < 5 && !is_role(message, roles[known])) known++;
    if (known == 5) {
        const char *role = json_string_value(json_object_get(message, "role"));
        return st_fail(STINT_E_ARG,
                       "message %zu: role '%.40s' is not one of system, user, assistant, tool", i,
                       role ? role : "");
    }
    drop_nulls(message);
    if (known == 1) ST_TRY(put(message, "role", json_string("system")));
    ST_TRY(normalize_content(message, i));
    return normalize_calls(message, i);
}

static unsigned ways_of(const json_t *plain) {
    unsigned ways = 0;
    size_t i;
    json_t *message;
    json_array_foreach(plain, i, message) {
        if (json_is_null(json_object_get(message, "content"))) ways |= ST_CHAT_EMPTY_CONTENT;
        if (json_object_get(message, "tool_calls")) ways |= ST_CHAT_TEXT_ARGUMENTS;
    }
    const json_t *first = json_array_get(plain, 0), *second = json_array_get(plain, 1);
    bool folds = is_role(first, "system") && is_role(second, "user") &&
                 json_is_string(json_object_get(first, "content")) &&
                 json_is_string(json_object_get(second, "content"));
    return ways | (folds ? ST_CHAT_FOLD_SYSTEM : 0);
}

// A copy that shares everything but the message objects.
static json_t *copy_messages(const json_t *messages) {
    json_t *copy = json_array(), *message;
    size_t i;
    json_array_foreach(messages, i, message) {
        if (copy && json_array_append_new(copy, json_copy(message)) != 0) {
            json_decref(copy);
            return NULL;
        }
    }
    return copy;
}

stint_status st_chat_normalize(const json_t *messages, json_t **plain, unsigned *ways) {
    json_t *message;
    size_t i;
    if (!json_is_array(messages)) return st_fail(STINT_E_ARG, "messages must be an array");
    if (json_array_size(messages) > MAX_MESSAGES)
        return st_fail(STINT_E_LIMIT, "there are %zu messages; the maximum is %d",
                       json_array_size(messages), MAX_MESSAGES);
    json_array_foreach(messages, i, message) {
        if (!json_is_object(message))
            return st_fail(STINT_E_ARG, "message %zu is not an object", i);
    }
    json_t *copy = copy_messages(messages);
    stint_status status = copy ? STINT_OK : no_memory();
    json_array_foreach(copy, i, message) {
        if (status == STINT_OK) status = normalize_message(message, i);
    }
    if (status != STINT_OK) {
        json_decref(copy);
        return status;
    }
    *plain = copy;
    *ways = ways_of(copy);
    return STINT_OK;
}

// ---- variants

static stint_status write_arguments(json_t *message) {
    json_t *calls = json_deep_copy(json_object_get(message, "tool_calls")), *call;
    size_t k;
    if (!calls) return no_memory();
    ST_TRY(put(message, "tool_calls", calls));
    json_array_foreach(calls, k, call) {
        json_t *function = json_object_get(call, "function");
        const json_t *arguments = json_object_get(function, "arguments");
        if (!json_is_object(arguments)) continue;
        char *text = json_dumps(arguments, JSON_COMPACT);
        json_t *string = text ? json_string(text) : NULL;
        free(text);
        ST_TRY(put(function, "arguments", string));
    }
    return STINT_OK;
}

static stint_status fold_system(json_t *messages) {
    const json_t *system = json_object_get(json_array_get(messages, 0), "content");
    json_t *user = json_array_get(messages, 1);
    const json_t *content = json_object_get(user, "content");
    struct st_bytes text = {0};
    stint_status status =
        st_bytes_append(&text, json_string_value(system), json_string_length(system));
    if (status == STINT_OK) status = st_bytes_append(&text, "\n\n", 2);
    if (status == STINT_OK)
        status = st_bytes_append(&text, json_string_value(content), json_string_length(content));
    if (status == STINT_OK) status = put(user, "content", json_stringn(text.data, text.count));
    if (status == STINT_OK) json_array_remove(messages, 0);
    st_bytes_free(&text);
    return status;
}

static stint_status vary_message(json_t *message, unsigned ways) {
    if ((ways & ST_CHAT_EMPTY_CONTENT) && json_is_null(json_object_get(message, "content")))
        ST_TRY(put(message, "content", json_string("")));
    if ((ways & ST_CHAT_TEXT_ARGUMENTS) && json_object_get(message, "tool_calls"))
        return write_arguments(message);
    return STINT_OK;
}

stint_status st_chat_vary(const json_t *plain, unsigned ways, json_t **varied) {
    json_t *copy = copy_messages(plain), *message;
    size_t i;
    stint_status status = copy ? STINT_OK : no_memory();
    json_array_foreach(copy, i, message) {
        if (status == STINT_OK) status = vary_message(message, ways);
    }
    if (status == STINT_OK && (ways & ST_CHAT_FOLD_SYSTEM)) status = fold_system(copy);
    if (status != STINT_OK) {
        json_decref(copy);
        return status;
    }
    *varied = copy;
    return STINT_OK;
}

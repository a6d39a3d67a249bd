// SPDX-License-Identifier: Apache-2.0
// Calls as Gemma 4 writes them: call:name{key:value,...}. Keys are bare, and texts stand between
// marks, so nothing in them is escaped.
#include "chat/tool_bodies.h"

#include <string.h>

enum { MAX_DEPTH = 32 };

static const char quote[] = "<|\"|>";

static json_t *read_value(const struct st_call_search *s, size_t *at, size_t depth);

static json_t *read_quoted(const struct st_call_search *s, size_t *at) {
    const char *text = s->text + *at, *end = memmem(text, s->n - *at, quote, sizeof quote - 1);
    if (!end) return NULL;
    *at += (size_t)(end - text) + sizeof quote - 1;
    return json_stringn(text, (size_t)(end - text));
}

// The characters up to a key's or a value's end, without blanks behind them. NULL: there are none.
static const char *read_plain(const struct st_call_search *s, size_t *at, size_t *n) {
    const char *text = s->text + *at;
    size_t end = 0;
    while (*at + end < s->n && text[end] && !strchr(":,{}[]", text[end])) end++;
    *at += end;
    while (end > 0 && strchr(" \t\r\n", text[end - 1])) end--;
    *n = end;
    return end ? text : NULL;
}

// A word or a number that JSON knows, else a text without its marks.
static json_t *read_bare(const struct st_call_search *s, size_t *at) {
    size_t n;
    const char *text = read_plain(s, at, &n);
    json_t *value = text ? json_loadb(text, n, JSON_DECODE_ANY, NULL) : NULL;
    return value || !text ? value : json_stringn(text, n);
}

// A key, bare or between marks, and the colon behind it.
static json_t *read_key(const struct st_call_search *s, size_t *at) {
    json_t *key;
    if (st_call_skip(s, at, quote)) {
        key = read_quoted(s, at);
    } else {
        size_t n;
        const char *text = read_plain(s, at, &n);
        key = text ? json_stringn(text, n) : NULL;
    }
    if (key && st_call_skip(s, at, ":")) return key;
    json_decref(key);
    return NULL;
}

static bool read_member(const struct st_call_search *s, size_t *at, json_t *to, size_t depth) {
    if (!json_is_object(to)) return json_array_append_new(to, read_value(s, at, depth)) == 0;
    json_t *key = read_key(s, at);
    const char *text = json_string_value(key);
    bool ok = text && json_object_set_new(to, text, read_value(s, at, depth)) == 0;
    json_decref(key);
    return ok;
}

static json_t *read_value(const struct st_call_search *s, size_t *at, size_t depth) {
    st_call_blanks(s, at);
    if (*at >= s->n || depth > MAX_DEPTH) return NULL;
    if (st_call_skip(s, at, quote)) return read_quoted(s, at);
    if (st_call_skip(s, at, "["))
        return st_call_members(s, at, json_array(), "]", read_member, depth);
    if (st_call_skip(s, at, "{"))
        return st_call_members(s, at, json_object(), "}", read_member, depth);
    return read_bare(s, at);
}

stint_status st_call_braced(struct st_call_search *s, size_t *at, bool *fits) {
    char name[ST_CALL_NAME];
    st_call_skip(s, at, "call:");
    *fits = st_call_name(s, at, name) && st_call_skip(s, at, "{");
    if (!*fits) return STINT_OK;
    json_t *arguments = st_call_members(s, at, json_object(), "}", read_member, 0);
    *fits = arguments != NULL;
    stint_status status = *fits ? st_call_add(s, name, arguments, fits) : STINT_OK;
    json_decref(arguments);
    return status;
}

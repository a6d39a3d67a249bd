// SPDX-License-Identifier: Apache-2.0
#include "chat/tool_bodies.h"

#include <stdlib.h>
#include <string.h>

#define BAR   "\xef\xbd\x9c" // U+FF5C
#define SPACE "\xe2\x96\x81" // U+2581

static const char fence[] = "\n```json\n", separator[] = "<" BAR "tool" SPACE "sep" BAR ">";

static stint_status no_memory(void) {
    return st_fail(STINT_E_NOMEM, "not enough memory for an answer's calls");
}

void st_call_drop(struct st_tool_calls *calls, size_t n) {
    while (calls->n > n) {
        calls->n--;
        free(calls->calls[calls->n].name);
        free(calls->calls[calls->n].arguments);
    }
}

// ---- calls

static bool is_tool(const json_t *tools, const char *name) {
    size_t i;
    json_t *tool;
    json_array_foreach(tools, i, tool) {
        const json_t *function = json_object_get(tool, "function");
        const char *own = json_string_value(json_object_get(function ? function : tool, "name"));
        if (own && strcmp(own, name) == 0) return true;
    }
    return false;
}

// Writes numbers with the fewest digits that give the same number; NULL: no memory.
static char *write_arguments(const json_t *arguments) {
    char *text = NULL;
    for (size_t digits = 15; digits <= 17; digits++) {
        free(text);
        text = json_dumps(arguments, JSON_REAL_PRECISION(digits));
        json_t *again = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
        bool same = again && json_equal(again, arguments);
        json_decref(again);
        if (same) break;
    }
    return text;
}

stint_status st_call_add(struct st_call_search *s, const char *name, const json_t *arguments,
                         bool *fits) {
    *fits = s->found.n < ST_TOOL_CALLS_MAX && name && is_tool(s->tools, name) &&
            json_is_object(arguments);
    if (!*fits) return STINT_OK;
    size_t n = s->found.n;
    struct st_tool_call *grown = realloc(s->found.calls, (n + 1) * sizeof *grown);
    if (!grown) return no_memory();
    s->found.calls = grown;
    grown[n] = (struct st_tool_call){strdup(name), write_arguments(arguments)};
    s->found.n++;
    return grown[n].name && grown[n].arguments ? STINT_OK : no_memory();
}

// Missing arguments are an empty object; some models write arguments as text.
static stint_status add_object(struct st_call_search *s, const json_t *call, bool *fits) {
    const char *name = json_string_value(json_object_get(call, s->format->name_key));
    const json_t *own = json_object_get(call, s->format->arguments_key);
    json_t *arguments = NULL;
    *fits = own || s->format->mark; // without a mark, a name alone is no call
    if (!*fits) return STINT_OK;
    if (json_is_object(own))
        arguments = json_incref((json_t *)own);
    else if (json_is_string(own))
        arguments = json_loads(json_string_value(own), 0, NULL);
    else if (!own || json_is_null(own))
        arguments = json_object();
    stint_status status = st_call_add(s, name, arguments, fits);
    json_decref(arguments);
    return status;
}

static stint_status add_value(struct st_call_search *s, const json_t *value, bool *fits) {
    size_t i;
    json_t *item;
    if (json_is_object(value)) return add_object(s, value, fits);
    *fits = json_array_size(value) > 0;
    json_array_foreach(value, i, item) {
        if (*fits) ST_TRY(add_object(s, item, fits));
    }
    return STINT_OK;
}

// ---- bodies

void st_call_blanks(const struct st_call_search *s, size_t *at) {
    while (*at < s->n && strchr(" \t\r\n", s->text[*at]) && s->text[*at]) ++*at;
}

bool st_call_skip(const struct st_call_search *s, size_t *at, const char *word) {
    size_t n = strlen(word);
    bool there = s->n - *at >= n && memcmp(s->text + *at, word, n) == 0;
    *at += there ? n : 0;
    return there;
}

json_t *st_call_members(const struct st_call_search *s, size_t *at, json_t *to, const char *close,
                        st_call_member_fn *read, size_t depth) {
    bool ok = to != NULL, more = true;
    for (st_call_blanks(s, at); ok && !st_call_skip(s, at, close); st_call_blanks(s, at)) {
        ok = more && read(s, at, to, depth + 1);
        st_call_blanks(s, at);
        more = st_call_skip(s, at, ",");
    }
    if (ok) return to;
    json_decref(to);
    return NULL;
}

// The JSON object or array that begins there; NULL if none does.
static json_t *read_json(const struct st_call_search *s, size_t *at) {
    json_error_t error;
    if (*at >= s->n || (s->text[*at] != '{' && s->text[*at] != '[')) return NULL;
    json_t *value =
        json_loadb(s->text + *at, s->n - *at, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &error);
    if (value && error.position > 0) *at += (size_t)error.position;
    return value;
}

stint_status st_call_values(struct st_call_search *s, size_t *at, bool *fits) {
    for (;;) {
        json_t *value = read_json(s, at);
        *fits = value != NULL;
        stint_status status = value ? add_value(s, value, fits) : STINT_OK;
        json_decref(value);
        if (status != STINT_OK || !*fits) return status;
        size_t next = *at;
        st_call_blanks(s, &next);
        if (next < s->n && s->text[next] == ';') next++;
        st_call_blanks(s, &next);
        if (next >= s->n || s->text[next] != '{') return STINT_OK;
        *at = next;
    }
}

bool st_call_name(const struct st_call_search *s, size_t *at, char name[ST_CALL_NAME]) {
    size_t n = 0;
    while (*at + n < s->n && n < ST_CALL_NAME - 1) {
        char c = s->text[*at + n];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (c == 0 || !strchr("_-.", c))) break;
        name[n++] = c;
    }
    name[n] = 0;
    *at += n;
    return n > 0;
}

static stint_status read_arguments(struct st_call_search *s, size_t *at, const char *name,
                                   bool *fits) {
    json_t *arguments = read_json(s, at);
    stint_status status = st_call_add(s, name, arguments, fits);
    json_decref(arguments);
    return status;
}

static stint_status read_named(struct st_call_search *s, size_t *at, bool *fits) {
    char name[ST_CALL_NAME], id[ST_CALL_NAME];
    *fits = st_call_name(s, at, name);
    if (!*fits) return STINT_OK;
    if (st_call_skip(s, at, "[CALL_ID]") && !st_call_name(s, at, id)) *fits = false;
    st_call_skip(s, at, "[ARGS]");
    st_call_blanks(s, at);
    return *fits ? read_arguments(s, at, name, fits) : STINT_OK;
}

static stint_status read_fenced(struct st_call_search *s, size_t *at, bool *fits) {
    char name[ST_CALL_NAME];
    *fits = st_call_name(s, at, name) && st_call_skip(s, at, separator);
    if (!*fits) return STINT_OK;
    size_t after = *at;
    char second[ST_CALL_NAME];
    bool fenced = st_call_name(s, &after, second) && st_call_skip(s, &after, fence);
    if (fenced) *at = after;
    st_call_blanks(s, at);
    ST_TRY(read_arguments(s, at, fenced ? second : name, fits));
    if (fenced && *fits) *fits = st_call_skip(s, at, "\n```");
    return STINT_OK;
}

static stint_status read_between(struct st_call_search *s, size_t *at, bool *fits) {
    switch (s->format->body) {
    case ST_BODY_JSON:
        return st_call_values(s, at, fits);
    case ST_BODY_NAMED:
        return read_named(s, at, fits);
    case ST_BODY_FENCED:
        return read_fenced(s, at, fits);
    case ST_BODY_TAGGED:
    case ST_BODY_KEYED:
        return st_call_tagged(s, at, fits);
    case ST_BODY_PYTHON:
        return st_call_python(s, at, fits);
    case ST_BODY_BRACED:
        return st_call_braced(s, at, fits);
    }
    *fits = false;
    return STINT_OK;
}

stint_status st_call_between(struct st_call_search *s, size_t *at, bool *fits) {
    size_t n = s->found.n;
    const char *close = s->format->close;
    st_call_blanks(s, at);
    ST_TRY(read_between(s, at, fits));
    size_t end = *at;
    st_call_blanks(s, &end);
    if (*fits && close) *fits = st_call_skip(s, &end, close) || end == s->n;
    if (*fits && !s->format->open) *fits = end == s->n;
    if (*fits && (close || !s->format->open)) *at = end;
    if (!*fits) st_call_drop(&s->found, n);
    return STINT_OK;
}

// SPDX-License-Identifier: Apache-2.0
// Calls whose arguments are not one JSON object: a tag for each argument, or Python's notation.
#include "chat/tool_bodies.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 32 }; // of Python's lists and dictionaries

static stint_status no_memory(void) {
    return st_fail(STINT_E_NOMEM, "not enough memory for a call's arguments");
}

// ---- Python's literals. NULL: there is none, or there is no memory

static json_t *read_literal(const struct st_call_search *s, size_t *at, size_t depth);

static bool ends_value(const struct st_call_search *s, size_t at) {
    st_call_blanks(s, &at);
    return at >= s->n || (s->text[at] && strchr(",)]}:", s->text[at]));
}

static bool put_utf8(struct st_bytes *to, uint32_t c) {
    char bytes[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6) bytes[i] = (char)(0x80 | (c & 0x3f));
    bytes[0] = (char)(first[n] | c);
    return st_bytes_append(to, bytes, n) == STINT_OK;
}

static bool read_hex(const struct st_call_search *s, size_t *at, size_t digits, uint32_t *value) {
    *value = 0;
    for (size_t i = 0; i < digits; i++, ++*at) {
        static const char hex[] = "0123456789abcdef";
        char c = *at < s->n ? s->text[*at] : 0;
        const char *digit = c ? strchr(hex, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
        if (!digit) return false;
        *value = *value * 16 + (uint32_t)(digit - hex);
    }
    return true;
}

// Behind a backslash. JSON writes characters beyond 16 bits as two.
static bool put_escape(const struct st_call_search *s, size_t *at, struct st_bytes *to) {
    static const char names[] = "ntrbf", meant[] = "\n\t\r\b\f";
    char c = *at < s->n ? s->text[(*at)++] : 0;
    const char *named = c ? strchr(names, c) : NULL;
    uint32_t code, low;
    if (named) return put_utf8(to, (unsigned char)meant[named - names]);
    if (c == 'u' || c == 'x') {
        if (!read_hex(s, at, c == 'u' ? 4 : 2, &code)) return false;
        if (code >= 0xd800 && code < 0xdc00 && st_call_skip(s, at, "\\u") &&
            read_hex(s, at, 4, &low) && low >= 0xdc00 && low < 0xe000)
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        return (code < 0xd800 || code > 0xdfff) && put_utf8(to, code);
    }
    if (c && !strchr("\\\"'/", c) && st_bytes_append(to, "\\", 1) != STINT_OK) return false;
    return c && st_bytes_append(to, &c, 1) == STINT_OK;
}

// Some templates do not escape quotes within a text. So only a quote that a value can end with ends
// it.
static json_t *read_text(const struct st_call_search *s, size_t *at) {
    struct st_bytes text = {0};
    char quote = s->text[(*at)++];
    bool ok = st_bytes_append(&text, "", 0) == STINT_OK, ended = false;
    while (ok && !ended && *at < s->n) {
        char c = s->text[(*at)++];
        if (c == '\\')
            ok = put_escape(s, at, &text);
        else if (c == quote && ends_value(s, *at))
            ended = true;
        else
            ok = st_bytes_append(&text, &c, 1) == STINT_OK;
    }
    json_t *value = ok && ended ? json_stringn(text.count ? text.data : "", text.count) : NULL;
    st_bytes_free(&text);
    return value;
}

static json_t *read_number(const struct st_call_search *s, size_t *at) {
    char digits[64];
    size_t n = 0;
    while (*at + n < s->n && n < sizeof digits - 1 && s->text[*at + n] &&
           strchr("+-.eE0123456789", s->text[*at + n])) {
        digits[n] = s->text[*at + n];
        n++;
    }
    json_t *value = n ? json_loadb(digits, n, JSON_DECODE_ANY, NULL) : NULL;
    *at += n;
    return value;
}

static json_t *read_word(const struct st_call_search *s, size_t *at) {
    if (st_call_skip(s, at, "True") || st_call_skip(s, at, "true")) return json_true();
    if (st_call_skip(s, at, "False") || st_call_skip(s, at, "false")) return json_false();
    if (st_call_skip(s, at, "None") || st_call_skip(s, at, "null")) return json_null();
    return read_number(s, at);
}

static bool read_member(const struct st_call_search *s, size_t *at, json_t *to, size_t depth) {
    if (!json_is_object(to)) return json_array_append_new(to, read_literal(s, at, depth)) == 0;
    json_t *key = read_literal(s, at, depth), *value = NULL;
    st_call_blanks(s, at);
    bool ok = json_is_string(key) && st_call_skip(s, at, ":") &&
              (value = read_literal(s, at, depth)) != NULL;
    ok = ok && json_object_set(to, json_string_value(key), value) == 0;
    json_decref(value);
    json_decref(key);
    return ok;
}

static json_t *read_literal(const struct st_call_search *s, size_t *at, size_t depth) {
    st_call_blanks(s, at);
    if (*at >= s->n || depth > MAX_DEPTH) return NULL;
    if (s->text[*at] == '"' || s->text[*at] == '\'') return read_text(s, at);
    if (st_call_skip(s, at, "["))
        return st_call_members(s, at, json_array(), "]", read_member, depth);
    if (st_call_skip(s, at, "("))
        return st_call_members(s, at, json_array(), ")", read_member, depth);
    if (st_call_skip(s, at, "{"))
        return st_call_members(s, at, json_object(), "}", read_member, depth);
    return read_word(s, at);
}

// ---- name(key=value, ...)

static bool read_named_value(const struct st_call_search *s, size_t *at, json_t *arguments) {
    char key[ST_CALL_NAME];
    st_call_blanks(s, at);
    if (!st_call_name(s, at, key)) return false;
    st_call_blanks(s, at);
    return st_call_skip(s, at, "=") &&
           json_object_set_new(arguments, key, read_literal(s, at, 0)) == 0;
}

static stint_status read_call(struct st_call_search *s, size_t *at, bool *fits) {
    char name[ST_CALL_NAME];
    *fits = st_call_name(s, at, name) && st_call_skip(s, at, "(");
    if (!*fits) return STINT_OK;
    json_t *arguments = json_object();
    if (!arguments) return no_memory();
    bool more = true;
    for (st_call_blanks(s, at); *fits && !st_call_skip(s, at, ")"); st_call_blanks(s, at)) {
        *fits = more && read_named_value(s, at, arguments);
        st_call_blanks(s, at);
        more = st_call_skip(s, at, ",");
    }
    stint_status status = *fits ? st_call_add(s, name, arguments, fits) : STINT_OK;
    json_decref(arguments);
    return status;
}

stint_status st_call_python(struct st_call_search *s, size_t *at, bool *fits) {
    bool list = st_call_skip(s, at, "[");
    for (bool first = true;; first = false) {
        size_t next = *at;
        st_call_blanks(s, &next);
        if (!first && st_call_skip(s, &next, ",")) st_call_blanks(s, &next);
        if (list && st_call_skip(s, &next, "]")) {
            *fits = !first;
            *at = next;
            return STINT_OK;
        }
        bool ends = next >= s->n || s->text[next] == '<'; // the closing mark, or the answer's end
        *fits = ends ? !first && !list : true;
        if (ends) return STINT_OK;
        ST_TRY(read_call(s, &next, fits));
        if (!*fits) return STINT_OK;
        *at = next;
    }
}

// ---- a tag for each argument

struct tags {
    const char *name, *behind_name; // around the name
    const char *key, *behind_key, *value, *behind_value;
    const char *end; // behind the arguments
};

static const struct tags tagged = {"<function=",   ">",          "<parameter=", ">", "",
                                   "</parameter>", "</function>"};
static const struct tags keyed = {"", "", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
                                  ""};

// The text up to a mark, behind which *at is then. NULL: it is not there.
static const char *read_up_to(const struct st_call_search *s, size_t *at, const char *mark,
                              size_t *n) {
    const char *text = s->text + *at, *end = memmem(text, s->n - *at, mark, strlen(mark));
    if (!end) return NULL;
    *n = (size_t)(end - text);
    *at += *n + strlen(mark);
    return text;
}

static const json_t *schema_of(const struct st_call_search *s, const char *name, const char *key) {
    size_t i;
    json_t *tool;
    json_array_foreach(s->tools, i, tool) {
        const json_t *function = json_object_get(tool, "function");
        if (!function) function = tool;
        const char *own = json_string_value(json_object_get(function, "name"));
        if (own && strcmp(own, name) == 0)
            return json_object_get(
                json_object_get(json_object_get(function, "parameters"), "properties"), key);
    }
    return NULL;
}

// Whether a schema has texts; of several types, whatever else it has.
static bool is_text(const json_t *schema) {
    const json_t *type = json_object_get(schema, "type"), *item;
    size_t i;
    if (json_is_string(type)) return strcmp(json_string_value(type), "string") == 0;
    json_array_foreach(type, i, item) {
        if (json_is_string(item) && strcmp(json_string_value(item), "string") == 0) return true;
    }
    return false;
}

// A text, unless the tool's schema wants something else, and that is what is there.
static json_t *value_of(const struct st_call_search *s, const json_t *schema, const char *text,
                        size_t n) {
    if (n > 0 && text[0] == '\n') text++, n--;
    if (n > 0 && text[n - 1] == '\n') n--;
    struct st_call_search inside = {.tools = s->tools, .text = text, .n = n};
    size_t at = 0;
    json_t *value = is_text(schema) ? NULL : read_literal(&inside, &at, 0);
    st_call_blanks(&inside, &at);
    if (value && at == n) return value;
    json_decref(value);
    return json_stringn(n ? text : "", n);
}

// Behind the mark in front of a key.
static bool read_tagged_value(const struct st_call_search *s, size_t *at, const struct tags *tags,
                              const char *name, json_t *arguments) {
    size_t n_key, n;
    char key[ST_CALL_NAME];
    const char *begin = read_up_to(s, at, tags->behind_key, &n_key);
    if (!begin || n_key == 0 || n_key >= sizeof key || memchr(begin, 0, n_key)) return false;
    memcpy(key, begin, n_key);
    key[n_key] = 0;
    if (*tags->value) st_call_blanks(s, at);
    if (!st_call_skip(s, at, tags->value)) return false;
    const char *text = read_up_to(s, at, tags->behind_value, &n);
    return text &&
           json_object_set_new(arguments, key, value_of(s, schema_of(s, name, key), text, n)) == 0;
}

stint_status st_call_tagged(struct st_call_search *s, size_t *at, bool *fits) {
    const struct tags *tags = s->format->body == ST_BODY_TAGGED ? &tagged : &keyed;
    char name[ST_CALL_NAME];
    st_call_skip(s, at, tags->name); // which may be the format's mark
    *fits = st_call_name(s, at, name) && st_call_skip(s, at, tags->behind_name);
    if (!*fits) return STINT_OK;
    json_t *arguments = json_object();
    if (!arguments) return no_memory();
    for (st_call_blanks(s, at); *fits && st_call_skip(s, at, tags->key); st_call_blanks(s, at))
        *fits = read_tagged_value(s, at, tags, name, arguments);
    if (*fits) *fits = st_call_skip(s, at, tags->end);
    stint_status status = *fits ? st_call_add(s, name, arguments, fits) : STINT_OK;
    json_decref(arguments);
    return status;
}

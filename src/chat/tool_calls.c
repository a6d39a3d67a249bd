// SPDX-License-Identifier: Apache-2.0
// One table row per format: the marks around calls, and the text between them. If several rows fit
// an answer, the one with the most calls wins; of equal ones, the first.
#include "chat/tool_calls.h"

#include "base/buffer.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TRIES = 2 * ST_TOOL_CALLS_MAX }; // marks that are examined, whether calls or not

enum body {
    BODY_JSON,   // {"name": ..., "arguments": {...}}, a list of them, or several with ; between
    BODY_NAMED,  // name{...}, name[ARGS]{...}, name[CALL_ID]id[ARGS]{...}
    BODY_FENCED, // kind<sep>name\n```json\n{...}\n``` or name<sep>{...}
};

struct format {
    const char *mark;   // in the templates of the family; NULL: JSON on lines of its own, bare,
                        // fenced or in tags, in any answer that has no calls otherwise
    const char *open;   // before a call or a list; NULL: the whole answer is a call
    const char *close;  // after it, except at the end of an answer that is cut off; NULL: no mark
    const char *around; // may surround all calls; %s is begin or end
    enum body body;
    const char *name_key, *arguments_key; // of BODY_JSON
};

#define BAR   "\xef\xbd\x9c" // U+FF5C
#define SPACE "\xe2\x96\x81" // U+2581

static const char fence[] = "\n```json\n", separator[] = "<" BAR "tool" SPACE "sep" BAR ">";

static const struct format formats[] = {
    {"<tool_call>", "<tool_call>", "</tool_call>", NULL, BODY_JSON, "name", "arguments"}, // Hermes
    {"[TOOL_CALLS]", "[TOOL_CALLS]", NULL, NULL, BODY_JSON, "name", "arguments"},         // Mistral
    {"[TOOL_CALLS]", "[TOOL_CALLS]", NULL, NULL, BODY_NAMED, NULL, NULL}, // later ones
    {"[TOOL_CALLS]", NULL, NULL, NULL, BODY_JSON, "name", "arguments"},   // without the mark
    {"<|python_tag|>", "<|python_tag|>", NULL, NULL, BODY_JSON, "name", "parameters"}, // Llama 3.1
    {"<|start_header_id|>", NULL, NULL, NULL, BODY_JSON, "name", "parameters"},        // and 3.2
    {"<|tool_call|>", "<|tool_call|>", "<|/tool_call|>", NULL, BODY_JSON, "name",
     "arguments"}, // Phi-4-mini
    {"<" BAR "tool" SPACE "call" SPACE "begin" BAR ">",
     "<" BAR "tool" SPACE "call" SPACE "begin" BAR ">",
     "<" BAR "tool" SPACE "call" SPACE "end" BAR ">",
     "<" BAR "tool" SPACE "calls" SPACE "%s" BAR ">", BODY_FENCED, NULL, NULL}, // DeepSeek
    {"Action:", "Action:\n```json\n", "```", NULL, BODY_JSON, "tool_name", "parameters"}, // Command
    {"<|START_ACTION|>", "<|START_ACTION|>", "<|END_ACTION|>", NULL, BODY_JSON, "tool_name",
     "parameters"}, // Command R7B
    {"<|plugin|>", "<|action_start|><|plugin|>", "<|action_end|>", NULL, BODY_JSON, "name",
     "parameters"},                                                     // InternLM 2
    {"<|channel|>", "<tool_call>", NULL, NULL, BODY_NAMED, NULL, NULL}, // gpt-oss (harmony.h)
    // Models that leave the marks of their template out.
    {NULL, NULL, NULL, NULL, BODY_JSON, "name", "arguments"},
    {NULL, NULL, NULL, NULL, BODY_JSON, "name", "parameters"},
};

// The state while one row is tried on one answer.
struct search {
    const struct format *format;
    const json_t *tools;
    const char *text;
    size_t n;
    struct st_tool_calls found;
    struct st_bytes content;
};

static stint_status no_memory(void) {
    return st_fail(STINT_E_NOMEM, "not enough memory for an answer's calls");
}

static void drop_calls(struct st_tool_calls *calls, size_t n) {
    while (calls->n > n) {
        calls->n--;
        free(calls->calls[calls->n].name);
        free(calls->calls[calls->n].arguments);
    }
}

void st_tool_calls_free(struct st_tool_calls *calls) {
    drop_calls(calls, 0);
    free(calls->calls);
    free(calls->content);
    *calls = (struct st_tool_calls){0};
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

// *fits is false if it is not a call of one of the tools.
static stint_status add_call(struct search *s, const char *name, const json_t *arguments,
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
static stint_status add_object(struct search *s, const json_t *call, bool *fits) {
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
    stint_status status = add_call(s, name, arguments, fits);
    json_decref(arguments);
    return status;
}

static stint_status add_value(struct search *s, const json_t *value, bool *fits) {
    size_t i;
    json_t *item;
    if (json_is_object(value)) return add_object(s, value, fits);
    *fits = json_array_size(value) > 0;
    json_array_foreach(value, i, item) {
        if (*fits) ST_TRY(add_object(s, item, fits));
    }
    return STINT_OK;
}

// ---- bodies: they begin at *at; if *fits, *at is then after the body

static void skip_blanks(const struct search *s, size_t *at) {
    while (*at < s->n && strchr(" \t\r\n", s->text[*at]) && s->text[*at]) ++*at;
}

static bool skip(const struct search *s, size_t *at, const char *word) {
    size_t n = strlen(word);
    bool there = s->n - *at >= n && memcmp(s->text + *at, word, n) == 0;
    *at += there ? n : 0;
    return there;
}

// The JSON object or array that begins there; NULL if none does.
static json_t *read_json(const struct search *s, size_t *at) {
    json_error_t error;
    if (*at >= s->n || (s->text[*at] != '{' && s->text[*at] != '[')) return NULL;
    json_t *value =
        json_loadb(s->text + *at, s->n - *at, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &error);
    if (value && error.position > 0) *at += (size_t)error.position;
    return value;
}

static stint_status read_values(struct search *s, size_t *at, bool *fits) {
    for (;;) {
        json_t *value = read_json(s, at);
        *fits = value != NULL;
        stint_status status = value ? add_value(s, value, fits) : STINT_OK;
        json_decref(value);
        if (status != STINT_OK || !*fits) return status;
        size_t next = *at;
        skip_blanks(s, &next);
        if (next < s->n && s->text[next] == ';') next++;
        skip_blanks(s, &next);
        if (next >= s->n || s->text[next] != '{') return STINT_OK;
        *at = next;
    }
}

// The name of a function: the characters that OpenAI allows, and dots.
static bool read_name(const struct search *s, size_t *at, char name[128]) {
    size_t n = 0;
    while (*at + n < s->n && n < 127) {
        char c = s->text[*at + n];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (c == 0 || !strchr("_-.", c))) break;
        name[n++] = c;
    }
    name[n] = 0;
    *at += n;
    return n > 0;
}

static stint_status read_arguments(struct search *s, size_t *at, const char *name, bool *fits) {
    json_t *arguments = read_json(s, at);
    stint_status status = add_call(s, name, arguments, fits);
    json_decref(arguments);
    return status;
}

static stint_status read_named(struct search *s, size_t *at, bool *fits) {
    char name[128], id[128];
    *fits = read_name(s, at, name);
    if (!*fits) return STINT_OK;
    if (skip(s, at, "[CALL_ID]") && !read_name(s, at, id)) *fits = false;
    skip(s, at, "[ARGS]");
    skip_blanks(s, at);
    return *fits ? read_arguments(s, at, name, fits) : STINT_OK;
}

static stint_status read_fenced(struct search *s, size_t *at, bool *fits) {
    char name[128];
    *fits = read_name(s, at, name) && skip(s, at, separator);
    if (!*fits) return STINT_OK;
    size_t after = *at;
    char second[128];
    bool fenced = read_name(s, &after, second) && skip(s, &after, fence);
    if (fenced) *at = after;
    skip_blanks(s, at);
    ST_TRY(read_arguments(s, at, fenced ? second : name, fits));
    if (fenced && *fits) *fits = skip(s, at, "\n```");
    return STINT_OK;
}

static stint_status read_body(struct search *s, size_t *at, bool *fits) {
    size_t n = s->found.n;
    const char *close = s->format->close;
    skip_blanks(s, at);
    ST_TRY(s->format->body == BODY_JSON    ? read_values(s, at, fits)
           : s->format->body == BODY_NAMED ? read_named(s, at, fits)
                                           : read_fenced(s, at, fits));
    size_t end = *at;
    skip_blanks(s, &end);
    if (*fits && close) *fits = skip(s, &end, close) || end == s->n;
    if (*fits && !s->format->open) *fits = end == s->n;
    if (*fits && (close || !s->format->open)) *at = end;
    if (!*fits) drop_calls(&s->found, n);
    return STINT_OK;
}

// ---- the text around them

static bool is_blank(const char *text, size_t n) {
    return n > 0 && st_utf8_is_space(st_utf8_decode(text, n));
}

// Removes the marks around all calls, and outer blanks.
static stint_status take_content(struct search *s) {
    static const char *const ends[] = {"begin", "end"};
    struct st_bytes *c = &s->content;
    ST_TRY(st_bytes_append(c, "", 0)); // data is not NULL from here on
    for (size_t i = 0; i < 2 && s->format->around && s->found.n; i++) {
        char mark[64];
        const char *hole = strstr(s->format->around, "%s");
        size_t n_before = (size_t)(hole - s->format->around), n_end = strlen(ends[i]);
        size_t n = n_before + n_end + strlen(hole + 2);
        memcpy(mark, s->format->around, n_before);
        memcpy(mark + n_before, ends[i], n_end);
        memcpy(mark + n_before + n_end, hole + 2, n - n_before - n_end);
        char *at = c->count ? memmem(c->data, c->count, mark, n) : NULL;
        if (!at) continue;
        memmove(at, at + n, (size_t)(c->data + c->count - (at + n)));
        c->count -= n;
    }
    size_t begin = 0, end = c->count, n;
    while ((n = st_utf8_length(c->data + begin, end - begin)) > 0 && is_blank(c->data + begin, n))
        begin += n;
    for (bool more = true; more && end > begin;) {
        n = 1;
        while (n < 4 && n < end - begin && ((unsigned char)c->data[end - n] & 0xc0) == 0x80) n++;
        more = st_utf8_length(c->data + end - n, n) == n && is_blank(c->data + end - n, n);
        if (more) end -= n;
    }
    s->found.content = malloc(end - begin + 1);
    if (!s->found.content) return no_memory();
    if (end > begin) memcpy(s->found.content, c->data + begin, end - begin);
    s->found.content[end - begin] = 0;
    return STINT_OK;
}

// ---- one row, all rows

static stint_status search_whole(struct search *s) {
    size_t at = 0;
    bool fits;
    ST_TRY(read_body(s, &at, &fits));
    return fits ? STINT_OK : st_bytes_append(&s->content, s->text, s->n);
}

static stint_status search_marks(struct search *s) {
    size_t kept = 0, n_open = strlen(s->format->open), from = 0;
    for (size_t i = 0; i < MAX_TRIES; i++) {
        const char *mark = memmem(s->text + from, s->n - from, s->format->open, n_open);
        if (!mark) break;
        size_t begin = (size_t)(mark - s->text), at = begin + n_open;
        bool fits;
        ST_TRY(read_body(s, &at, &fits));
        from = begin + n_open;
        if (!fits) continue;
        ST_TRY(st_bytes_append(&s->content, s->text + kept, begin - kept));
        kept = from = at;
    }
    return st_bytes_append(&s->content, s->text + kept, s->n - kept);
}

// ---- calls without marks

static bool begins_line(const char *text, size_t at) {
    while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t')) at--;
    return at == 0 || text[at - 1] == '\n' || text[at - 1] == '>';
}

static bool is_tag_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
}

// Where the fence or tag in front of `at` begins; `at` if there is none.
static size_t before_wrapping(const char *text, size_t at) {
    size_t end = at;
    while (end > 0 && strchr(" \t\r\n", text[end - 1])) end--;
    size_t begin = end;
    if (end > 0 && text[end - 1] == '>') {
        begin--;
        while (begin > 0 && is_tag_letter(text[begin - 1])) begin--;
        return begin > 0 && text[begin - 1] == '<' ? begin - 1 : at;
    }
    while (begin > 0 && text[begin - 1] != '\n') begin--;
    return end - begin >= 3 && memcmp(text + begin, "```", 3) == 0 ? begin : at;
}

// Where the fence or tag behind `at` ends; `at` if there is none.
static size_t after_wrapping(const struct search *s, size_t at) {
    size_t end = at;
    skip_blanks(s, &end);
    if (skip(s, &end, "```")) return end;
    if (!skip(s, &end, "</")) return at;
    while (end < s->n && is_tag_letter(s->text[end])) end++;
    return skip(s, &end, ">") ? end : at;
}

static bool ends_line(const struct search *s, size_t at) {
    while (at < s->n && (s->text[at] == ' ' || s->text[at] == '\t')) at++;
    return at == s->n || s->text[at] == '\n' || s->text[at] == '\r';
}

static stint_status search_bare(struct search *s) {
    size_t kept = 0, n_tries = 0;
    for (size_t i = 0; i < s->n && n_tries < MAX_TRIES; i++) {
        size_t at = i, n = s->found.n;
        bool fits;
        if ((s->text[i] != '{' && s->text[i] != '[') || !begins_line(s->text, i)) continue;
        n_tries++;
        ST_TRY(read_values(s, &at, &fits));
        fits = fits && (ends_line(s, at) || after_wrapping(s, at) > at);
        if (!fits) drop_calls(&s->found, n);
        if (!fits) continue;
        size_t begin = before_wrapping(s->text, i);
        ST_TRY(st_bytes_append(&s->content, s->text + kept, begin > kept ? begin - kept : 0));
        kept = after_wrapping(s, at);
        i = kept - 1;
    }
    return st_bytes_append(&s->content, s->text + kept, s->n - kept);
}

static stint_status search_format(const struct format *format, const json_t *tools,
                                  const char *answer, size_t n, struct st_tool_calls *out) {
    struct search s = {.format = format, .tools = tools, .text = answer, .n = n};
    stint_status status = !format->mark  ? search_bare(&s)
                          : format->open ? search_marks(&s)
                                         : search_whole(&s);
    if (status == STINT_OK) status = take_content(&s);
    st_bytes_free(&s.content);
    if (status != STINT_OK) {
        st_tool_calls_free(&s.found);
        return status;
    }
    *out = s.found;
    return STINT_OK;
}

static const size_t n_formats = sizeof formats / sizeof *formats;

static bool speaks_of(const char *source, const struct format *format) {
    return source && format->mark && strstr(source, format->mark);
}

// Whether the formats of the template are known; else all are tried.
static bool speaks_of_any(const char *source) {
    bool any = false;
    for (size_t i = 0; i < n_formats; i++) any = any || speaks_of(source, &formats[i]);
    return any;
}

stint_status st_tool_calls_parse(const struct st_chat *chat, const char *answer, size_t n,
                                 const json_t *tools, struct st_tool_calls *out) {
    const char *source = st_chat_template_text(chat);
    struct st_tool_calls best = {0};
    bool any = speaks_of_any(source);
    for (size_t i = 0; i < n_formats; i++) {
        struct st_tool_calls found = {0};
        if (formats[i].mark ? any && !speaks_of(source, &formats[i]) : best.n > 0) continue;
        stint_status status = search_format(&formats[i], tools, n ? answer : "", n, &found);
        if (status != STINT_OK) {
            st_tool_calls_free(&best);
            return status;
        }
        bool better = !best.content || found.n > best.n;
        st_tool_calls_free(better ? &best : &found);
        if (better) best = found;
    }
    *out = best;
    return STINT_OK;
}

// ---- text that no call can begin in

// Whether text[0, n) begins with `mark`, or is a part of it that the end cuts off.
static bool may_begin(const char *text, size_t n, const char *mark, size_t n_mark) {
    return memcmp(text, mark, n < n_mark ? n : n_mark) == 0;
}

static bool may_mark(const char *source, bool any, const char *text, size_t n) {
    for (size_t i = 0; i < n_formats; i++) {
        const struct format *f = &formats[i];
        if (!f->open || (any && !speaks_of(source, f))) continue;
        if (may_begin(text, n, f->open, strlen(f->open))) return true;
        size_t n_around = f->around ? (size_t)(strstr(f->around, "%s") - f->around) : 0;
        if (n_around > 0 && may_begin(text, n, f->around, n_around)) return true;
    }
    return false;
}

// Whether JSON begins there, or a fence or tag that may have JSON behind it.
static bool may_be_bare(const char *text, size_t n) {
    size_t at = 0;
    if (text[0] == '{' || text[0] == '[') return true;
    if (text[0] == '<') {
        for (at = 1; at < n && is_tag_letter(text[at]);) at++;
        if (at < n && text[at++] != '>') return false;
    } else {
        if (!may_begin(text, n, "```", 3)) return false;
        const char *end = memchr(text, '\n', n);
        at = end ? (size_t)(end - text) : n;
    }
    while (at < n && strchr(" \t\r\n", text[at])) at++;
    return at >= n || text[at] == '{' || text[at] == '[';
}

size_t st_tool_calls_certain(const struct st_chat *chat, const char *text, size_t from, size_t n) {
    const char *source = st_chat_template_text(chat);
    bool any = speaks_of_any(source);
    size_t at = from;
    while (at < n && !may_mark(source, any, text + at, n - at) &&
           !(begins_line(text, at) && may_be_bare(text + at, n - at)))
        at++;
    while (at > from && strchr(" \t\r\n", text[at - 1])) at--; // calls stand without blanks
    return at;
}

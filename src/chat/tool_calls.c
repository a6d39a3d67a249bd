// SPDX-License-Identifier: Apache-2.0
// One table row per format: the marks around calls, and the text between them. If several rows fit
// an answer, the one with the most calls wins; of equal ones, the first.
#include "chat/tool_calls.h"

#include "base/utf8.h"
#include "chat/tool_bodies.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TRIES = 2 * ST_TOOL_CALLS_MAX }; // marks that are examined, whether calls or not

#define BAR   "\xef\xbd\x9c" // U+FF5C
#define SPACE "\xe2\x96\x81" // U+2581

static const struct st_call_format formats[] = {
    {"<tool_call>", "<tool_call>", "</tool_call>", NULL, ST_BODY_JSON, "name",
     "arguments"}, // Hermes, Qwen, Granite 4, SmolLM3, Falcon-H1, ERNIE 4.5
    {"<function=", "<tool_call>", "</tool_call>", NULL, ST_BODY_TAGGED, NULL, NULL}, // Qwen3.5
    {"<function=", "<function=", NULL, NULL, ST_BODY_TAGGED, NULL, NULL}, // that leave a mark out
    {"<arg_key>", "<tool_call>", "</tool_call>", NULL, ST_BODY_KEYED, NULL, NULL}, // GLM-4.5
    {"<|observation|>", NULL, NULL, NULL, ST_BODY_NAMED, NULL, NULL},              // GLM-4
    {"<|tool_call_start|>", "<|tool_call_start|>", "<|tool_call_end|>", NULL, ST_BODY_PYTHON, NULL,
     NULL}, // LFM2
    {"<|tool_call_start|>", "<|tool_call_start|>", "<|tool_call_end|>", NULL, ST_BODY_JSON, "name",
     "arguments"}, // LFM2 that was told to write JSON
    {"<function_calls>", "<function_calls>", "</function_calls>", NULL, ST_BODY_PYTHON, NULL,
     NULL}, // OLMo 3
    {"<TOOLCALL>", "<TOOLCALL>", "</TOOLCALL>", NULL, ST_BODY_JSON, "name",
     "arguments"},                                                                   // Nemotron
    {"[TOOL_CALLS]", "[TOOL_CALLS]", NULL, NULL, ST_BODY_JSON, "name", "arguments"}, // Mistral
    {"[TOOL_CALLS]", "[TOOL_CALLS]", NULL, NULL, ST_BODY_NAMED, NULL, NULL},         // later ones
    {"[TOOL_CALLS]", NULL, NULL, NULL, ST_BODY_JSON, "name", "arguments"}, // without the mark
    {"<|python_tag|>", "<|python_tag|>", NULL, NULL, ST_BODY_JSON, "name",
     "parameters"},                                                                // Llama 3.1
    {"<|start_header_id|>", NULL, NULL, NULL, ST_BODY_JSON, "name", "parameters"}, // and 3.2
    {"<|tool_call|>", "<|tool_call|>", "<|/tool_call|>", NULL, ST_BODY_JSON, "name",
     "arguments"}, // Phi-4-mini
    {"<|tool_call>", "<|tool_call>", "<tool_call|>", NULL, ST_BODY_BRACED, NULL, NULL}, // Gemma 4
    {"<" BAR "tool" SPACE "call" SPACE "begin" BAR ">",
     "<" BAR "tool" SPACE "call" SPACE "begin" BAR ">",
     "<" BAR "tool" SPACE "call" SPACE "end" BAR ">",
     "<" BAR "tool" SPACE "calls" SPACE "%s" BAR ">", ST_BODY_FENCED, NULL, NULL}, // DeepSeek
    {"Action:", "Action:\n```json\n", "```", NULL, ST_BODY_JSON, "tool_name",
     "parameters"}, // Command
    {"<|START_ACTION|>", "<|START_ACTION|>", "<|END_ACTION|>", NULL, ST_BODY_JSON, "tool_name",
     "parameters"}, // Command R7B
    {"<|plugin|>", "<|action_start|><|plugin|>", "<|action_end|>", NULL, ST_BODY_JSON, "name",
     "parameters"},                                                        // InternLM 2
    {"<|channel|>", "<tool_call>", NULL, NULL, ST_BODY_NAMED, NULL, NULL}, // gpt-oss (harmony.h)
    // Models that leave the marks of their template out.
    {NULL, NULL, NULL, NULL, ST_BODY_JSON, "name", "arguments"},
    {NULL, NULL, NULL, NULL, ST_BODY_JSON, "name", "parameters"},
};

static stint_status no_memory(void) {
    return st_fail(STINT_E_NOMEM, "not enough memory for an answer's calls");
}

void st_tool_calls_free(struct st_tool_calls *calls) {
    st_call_drop(calls, 0);
    free(calls->calls);
    free(calls->content);
    *calls = (struct st_tool_calls){0};
}

// ---- the text around them

static bool is_blank(const char *text, size_t n) {
    return n > 0 && st_utf8_is_space(st_utf8_decode(text, n));
}

// Removes the marks around all calls, and outer blanks.
static stint_status take_content(struct st_call_search *s) {
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

static stint_status search_whole(struct st_call_search *s) {
    size_t at = 0;
    bool fits;
    ST_TRY(st_call_between(s, &at, &fits));
    return fits ? STINT_OK : st_bytes_append(&s->content, s->text, s->n);
}

static stint_status search_marks(struct st_call_search *s) {
    size_t kept = 0, n_open = strlen(s->format->open), from = 0;
    for (size_t i = 0; i < MAX_TRIES; i++) {
        const char *mark = memmem(s->text + from, s->n - from, s->format->open, n_open);
        if (!mark) break;
        size_t begin = (size_t)(mark - s->text), at = begin + n_open;
        bool fits;
        ST_TRY(st_call_between(s, &at, &fits));
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
static size_t after_wrapping(const struct st_call_search *s, size_t at) {
    size_t end = at;
    st_call_blanks(s, &end);
    if (st_call_skip(s, &end, "```")) return end;
    if (!st_call_skip(s, &end, "</")) return at;
    while (end < s->n && is_tag_letter(s->text[end])) end++;
    return st_call_skip(s, &end, ">") ? end : at;
}

static bool ends_line(const struct st_call_search *s, size_t at) {
    while (at < s->n && (s->text[at] == ' ' || s->text[at] == '\t')) at++;
    return at == s->n || s->text[at] == '\n' || s->text[at] == '\r';
}

static stint_status search_bare(struct st_call_search *s) {
    size_t kept = 0, n_tries = 0;
    for (size_t i = 0; i < s->n && n_tries < MAX_TRIES; i++) {
        size_t at = i, n = s->found.n;
        bool fits;
        if ((s->text[i] != '{' && s->text[i] != '[') || !begins_line(s->text, i)) continue;
        n_tries++;
        ST_TRY(st_call_values(s, &at, &fits));
        fits = fits && (ends_line(s, at) || after_wrapping(s, at) > at);
        if (!fits) st_call_drop(&s->found, n);
        if (!fits) continue;
        size_t begin = before_wrapping(s->text, i);
        ST_TRY(st_bytes_append(&s->content, s->text + kept, begin > kept ? begin - kept : 0));
        kept = after_wrapping(s, at);
        i = kept - 1;
    }
    return st_bytes_append(&s->content, s->text + kept, s->n - kept);
}

static stint_status search_format(const struct st_call_format *format, const json_t *tools,
                                  const char *answer, size_t n, struct st_tool_calls *out) {
    struct st_call_search s = {.format = format, .tools = tools, .text = answer, .n = n};
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

static bool speaks_of(const char *source, const struct st_call_format *format) {
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
        const struct st_call_format *f = &formats[i];
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

// Whether a whole answer may be the name of a function and its arguments.
static bool may_be_named(const char *source, const char *text, size_t n) {
    struct st_call_search s = {.text = text, .n = n};
    char name[ST_CALL_NAME];
    size_t at = 0;
    bool named = false;
    for (size_t i = 0; i < n_formats; i++)
        named = named || (!formats[i].open && formats[i].body == ST_BODY_NAMED &&
                          speaks_of(source, &formats[i]));
    if (!named) return false;
    st_call_blanks(&s, &at);
    if (at < n && !st_call_name(&s, &at, name)) return false;
    st_call_blanks(&s, &at);
    return at >= n || text[at] == '{';
}

size_t st_tool_calls_certain(const struct st_chat *chat, const char *text, size_t from, size_t n) {
    const char *source = st_chat_template_text(chat);
    bool any = speaks_of_any(source);
    size_t at = from;
    if (from == 0 && may_be_named(source, text, n)) return 0;
    while (at < n && !may_mark(source, any, text + at, n - at) &&
           !(begins_line(text, at) && may_be_bare(text + at, n - at)))
        at++;
    while (at > from && strchr(" \t\r\n", text[at - 1])) at--; // calls stand without blanks
    return at;
}

// SPDX-License-Identifier: Apache-2.0
#include "chat/reasoning.h"

#include <string.h>

// Only the first byte of a mark is '<'. So if a mark breaks off, another one can only begin with
// the byte that broke it.
static const char opening[] = ST_REASONING_OPEN, closing[] = ST_REASONING_CLOSE;

static const struct st_renamed_mark renamed[][3] = {
    {{"[THINK]", ST_REASONING_OPEN, NULL},
     {"[/THINK]", ST_REASONING_CLOSE, NULL},
     {0}}, // Ministral 3
    // ERNIE 4.5: around what follows reasoning.
    {{"<response>", "", NULL}, {"</response>", "", NULL}, {0}},
    // Gemma 4: channels with a name.
    {{"<|channel>", ST_REASONING_OPEN, "thought\n"}, {"<channel|>", ST_REASONING_CLOSE, NULL}, {0}},
};

const struct st_renamed_mark *st_reasoning_renamed(const char *chat_template) {
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (chat_template && strstr(chat_template, renamed[i][0].token)) return renamed[i];
    return NULL;
}

const struct st_renamed_mark *st_reasoning_rename(const struct st_renamed_mark *marks,
                                                  const char *text, size_t n) {
    for (; marks && marks->token; marks++)
        if (strlen(marks->token) == n && memcmp(marks->token, text, n) == 0) return marks;
    return NULL;
}

size_t st_reasoning_title(const char **title, const char *text, size_t n) {
    size_t same = 0;
    if (!*title) return 0;
    while (same < n && (*title)[same] && text[same] == (*title)[same]) same++;
    *title = same < n || !(*title)[same] ? NULL : *title + same;
    return same;
}

enum { MAX_BLANKS = 64 }; // before the mark: they are held back while it may still come

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void answer_from(struct st_reasoning *r, size_t place) {
    r->phase = ST_REASONING_OVER;
    r->answer = place;
}

static void push_before(struct st_reasoning *r, char c) {
    if (c == opening[r->n_mark]) {
        if (opening[++r->n_mark] != 0) return;
        r->n_mark = 0;
        r->phase = ST_REASONING_INSIDE;
    } else if (r->n_mark > 0 || !is_blank(c) || r->n >= MAX_BLANKS) {
        r->n_mark = 0;
        answer_from(r, 0);
    }
}

static void begin(struct st_reasoning *r) {
    if (!r->begun) r->from = r->to = r->n;
    r->begun = true;
}

static void push_inside(struct st_reasoning *r, char c) {
    if (!is_blank(c)) begin(r);
    if (c == closing[r->n_mark]) {
        if (closing[++r->n_mark] != 0) return;
        r->n_mark = 0;
        r->phase = ST_REASONING_BEHIND;
        return;
    }
    if (r->n_mark > 0) r->to = r->n; // it was ordinary text
    r->n_mark = c == closing[0];
    if (!r->n_mark && !is_blank(c)) r->to = r->n + 1;
}

void st_reasoning_push(struct st_reasoning *r, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++, r->n++) {
        if (r->phase == ST_REASONING_BEFORE)
            push_before(r, bytes[i]);
        else if (r->phase == ST_REASONING_INSIDE)
            push_inside(r, bytes[i]);
        else if (r->phase == ST_REASONING_BEHIND && !is_blank(bytes[i]))
            answer_from(r, r->n);
    }
}

void st_reasoning_end(struct st_reasoning *r) {
    if (r->phase == ST_REASONING_BEFORE) answer_from(r, 0);
    if (r->phase == ST_REASONING_INSIDE && r->n_mark > 0) r->to = r->n;
    if (r->phase == ST_REASONING_INSIDE || r->phase == ST_REASONING_BEHIND) answer_from(r, r->n);
    r->n_mark = 0;
}

size_t st_reasoning_before_answer(const struct st_reasoning *r, size_t n) {
    if (r->phase == ST_REASONING_NONE) return 0;
    if (r->phase != ST_REASONING_OVER) return n;
    return r->answer < n ? r->answer : n;
}

// SPDX-License-Identifier: Apache-2.0
// Finds the function calls in a model's answer, by the marks of the families that define a format.
#ifndef ST_CHAT_TOOL_CALLS_H
#define ST_CHAT_TOOL_CALLS_H

#include "chat/chat.h"

enum { ST_TOOL_CALLS_MAX = 128 }; // of one answer; further calls stay text

struct st_tool_call {
    char *name;
    char *arguments; // JSON text of an object
};

struct st_tool_calls {
    char *content; // the text around them, trimmed; may be ""
    struct st_tool_call *calls;
    size_t n;
};

// Finds the calls in answer[0, n), which may or may not hold the text of special tokens. The
// formats that the chat's template mentions are tried, or all formats if it mentions none; then
// JSON without marks, which many small models write: bare, fenced or in tags, on lines of its own.
// A call of a function that is not among `tools` (OpenAI's array; NULL: none), or whose JSON is
// malformed, stays text. The caller frees *out. STINT_E_NOMEM.
stint_status st_tool_calls_parse(const struct st_chat *chat, const char *answer, size_t n,
                                 const json_t *tools, struct st_tool_calls *out);
// How many bytes of text[0, n), an answer's beginning, are certain to stand in front of all calls.
// [0, from) is known to; blanks at the end are not certain.
size_t st_tool_calls_certain(const struct st_chat *chat, const char *text, size_t from, size_t n);
void st_tool_calls_free(struct st_tool_calls *calls);

#endif

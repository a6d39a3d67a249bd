// SPDX-License-Identifier: Apache-2.0
// Tool calls of answers. If a call is required, a schema made from those of the tools constrains
// the answer to the JSON {"name", "arguments"}, or an array of those. If the model may decide, the
// marks of its family tell.
#ifndef ST_GENERATE_CALLS_H
#define ST_GENERATE_CALLS_H

#include "chat/tool_calls.h"

enum st_tool_choice {
    ST_TOOLS_NONE, // also if there are no tools
    ST_TOOLS_AUTO,
    ST_TOOLS_REQUIRED // one of them; only `name` if that is not NULL
};

struct st_tools {
    const json_t *list; // OpenAI's array, checked; NULL: none, or none may be called
    enum st_tool_choice choice;
    const char *name;
    bool one_call; // at most one in an answer
    bool several;  // a required answer is an array of calls
};

// STINT_E_ARG where an element of OpenAI's array is not a function with a name of 1 to 64 bytes and
// a schema, if any, that is an object. The text is about "tool N".
stint_status st_tools_check(const json_t *list);
// The name of one of them, checked.
const char *st_tools_name(const json_t *tool);
// The one of this name, or NULL; whether there is one.
json_t *st_tools_find(const json_t *list, const char *name);
bool st_tools_have(const json_t *list, const char *name);

// The schema that an answer must match; *schema is NULL if there is none, else a new reference.
// STINT_E_NOMEM.
stint_status st_calls_schema(const struct st_tools *tools, json_t **schema);

// Whether special tokens must appear in the text: marks of calls are such tokens in some families,
// and those of reasoning in a few. Not in gpt-oss's, whose channels are rewritten (chat/harmony.h).
bool st_calls_marks_special(const struct stint_tokenizer *tokenizer, bool tools, bool reasons);

// Finds the calls in answer[0, n), which has ended. *calls is to be freed. STINT_E_NOMEM.
stint_status st_calls_find(const struct st_tools *tools, const struct st_chat *chat,
                           const char *answer, size_t n, struct st_tool_calls *calls);

#endif

// SPDX-License-Identifier: Apache-2.0
// Tool calls of answers. Where one is required the answer can only be one, as JSON: {"name",
// "arguments"}, by a schema made of the tools'. Where it is the model's choice, its family's own
// marks tell.
#ifndef ST_GENERATE_CALLS_H
#define ST_GENERATE_CALLS_H

#include "chat/tool_calls.h"

enum st_tool_choice {
    ST_TOOLS_NONE, // also where there are no tools
    ST_TOOLS_AUTO,
    ST_TOOLS_REQUIRED // one of them; `name` alone if that is not NULL
};

struct st_tools {
    const json_t *list; // OpenAI's array, checked; NULL: none, or none may be called
    enum st_tool_choice choice;
    const char *name;
    bool one_call; // at most one in an answer
};

// STINT_E_ARG where an element of OpenAI's array is not a function with a name of 1 to 64 bytes and
// a schema, if any, that is an object. The text is about "tool N".
stint_status st_tools_check(const json_t *list);
// The name of one of them, checked.
const char *st_tools_name(const json_t *tool);
// Whether one of them has this name.
bool st_tools_have(const json_t *list, const char *name);

// The schema that an answer must follow; NULL in *schema where none must. *schema is a new
// reference. STINT_E_NOMEM.
stint_status st_calls_schema(const struct st_tools *tools, json_t **schema);

// Whether special tokens must appear in the text: marks of calls are such tokens in some families,
// and those of reasoning in a few.
bool st_calls_marks_special(const struct stint_tokenizer *tokenizer, bool tools, bool reasons);

// Finds the calls in answer[0, n), which has ended. *calls is to be freed. STINT_E_NOMEM.
stint_status st_calls_find(const struct st_tools *tools, const struct st_chat *chat,
                           const char *answer, size_t n, struct st_tool_calls *calls);

#endif

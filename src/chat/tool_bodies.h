// SPDX-License-Identifier: Apache-2.0
// Formats of function calls as data, and the readers of what stands between their marks.
#ifndef ST_CHAT_TOOL_BODIES_H
#define ST_CHAT_TOOL_BODIES_H

#include "base/buffer.h"
#include "chat/tool_calls.h"

enum st_call_body {
    ST_BODY_JSON,   // {"name": ..., "arguments": {...}}, a list of them, or several with ; between
    ST_BODY_NAMED,  // name{...}, name[ARGS]{...}, name[CALL_ID]id[ARGS]{...}
    ST_BODY_FENCED, // kind<sep>name\n```json\n{...}\n``` or name<sep>{...}
    ST_BODY_TAGGED, // <function=name><parameter=key>value</parameter>...</function>
    ST_BODY_KEYED,  // name<arg_key>key</arg_key><arg_value>value</arg_value>...
    ST_BODY_PYTHON, // name(key=value, ...), or a list of them
    ST_BODY_BRACED, // call:name{key:value,...}, with <|"|> around texts
};

struct st_call_format {
    const char *mark;   // in the templates of the family; NULL: JSON on lines of its own, bare,
                        // fenced or in tags, in any answer that has no calls otherwise
    const char *open;   // before a call or a list; NULL: the whole answer is a call
    const char *close;  // after it, except at the end of an answer that is cut off; NULL: no mark
    const char *around; // may surround all calls; %s is begin or end
    enum st_call_body body;
    const char *name_key, *arguments_key; // of ST_BODY_JSON
};

// The state while one format is tried on one answer.
struct st_call_search {
    const struct st_call_format *format;
    const json_t *tools;
    const char *text;
    size_t n;
    struct st_tool_calls found;
    struct st_bytes content;
};

enum { ST_CALL_NAME = 128 }; // bytes of a function's name, with a zero

// Readers begin at *at; what was read ends there. If *fits is false, it is not what was looked for,
// and *at means nothing.

// What stands between a format's marks, with the closing one. Adds the calls.
stint_status st_call_between(struct st_call_search *s, size_t *at, bool *fits);
// JSON objects of calls, with ; between.
stint_status st_call_values(struct st_call_search *s, size_t *at, bool *fits);
// ST_BODY_BRACED (tool_braces.c).
stint_status st_call_braced(struct st_call_search *s, size_t *at, bool *fits);
// ST_BODY_TAGGED and ST_BODY_KEYED; ST_BODY_PYTHON (tool_arguments.c).
stint_status st_call_tagged(struct st_call_search *s, size_t *at, bool *fits);
stint_status st_call_python(struct st_call_search *s, size_t *at, bool *fits);

// *fits is false if it is not a call of one of the tools.
stint_status st_call_add(struct st_call_search *s, const char *name, const json_t *arguments,
                         bool *fits);
// Takes back all but the first n.
void st_call_drop(struct st_tool_calls *calls, size_t n);

void st_call_blanks(const struct st_call_search *s, size_t *at);
bool st_call_skip(const struct st_call_search *s, size_t *at, const char *word);
// Adds the next value, or key and value, to an array or an object.
typedef bool st_call_member_fn(const struct st_call_search *s, size_t *at, json_t *to,
                               size_t depth);
// Members between commas, up to the closing bracket, added to `to`, which the caller gets back.
// NULL, and `to` is freed, if one cannot be read.
json_t *st_call_members(const struct st_call_search *s, size_t *at, json_t *to, const char *close,
                        st_call_member_fn *read, size_t depth);
// The name of a function: the characters that OpenAI allows, and dots.
bool st_call_name(const struct st_call_search *s, size_t *at, char name[ST_CALL_NAME]);

#endif

// SPDX-License-Identifier: Apache-2.0
// Renders a conversation as the text that a model was trained on: by the checkpoint's own template,
// or by the built-in format that is recognised from it.
#ifndef ST_CHAT_CHAT_H
#define ST_CHAT_CHAT_H

#include "chat/formats.h"
#include "chat/reasoning.h"

#include <jansson.h>

struct st_chat; // immutable, shared by threads

// template_text is copied and may be NULL; the tokenizer, which may be NULL, is borrowed until the
// close. A template that cannot be compiled is logged, and the built-in format is used.
// STINT_E_NOMEM.
stint_status st_chat_open(const char *template_text, const struct stint_tokenizer *tokenizer,
                          struct st_chat **chat);
void st_chat_close(struct st_chat *chat); // accepts NULL

bool st_chat_has_template(const struct st_chat *chat);         // true if its own template is used
bool st_chat_reasons(const struct st_chat *chat);              // true if it knows reasoning's marks
const char *st_chat_template_text(const struct st_chat *chat); // borrowed; NULL: it has none
const struct st_chat_format *st_chat_builtin(const struct st_chat *chat); // never NULL

// messages: an array in OpenAI's form. Roles are system (or developer), user, assistant, tool;
// content is a string, null, or an array of text parts, which are joined by newlines; tool_calls,
// tool_call_id and name are passed to the template; arguments that are the text of an object are
// passed as that object. tools: an array or NULL. *text is malloc'ed, terminated, and ends with the
// opening of the assistant's turn. If the template fails, it is tried again with null content as
// "", with arguments as text, and with the system message in the first user message. STINT_E_ARG:
// bad messages, or the template's own error text; STINT_E_UNSUPPORTED: tools or parts that the
// format does not have; STINT_E_LIMIT; STINT_E_NOMEM.
stint_status st_chat_prompt(const struct st_chat *chat, const json_t *messages, const json_t *tools,
                            char **text);

// Whether the model reasons first, if its template leaves that to the caller: the variables
// enable_thinking and thinking. ST_CHAT_THINKS_NOT also closes reasoning that the template always
// opens.
enum st_chat_thinking { ST_CHAT_THINKS_AS_EVER, ST_CHAT_THINKS, ST_CHAT_THINKS_NOT };

// The same prompt; *answer is the phase in which the answer begins: ST_REASONING_NONE if the
// template does not know reasoning, _INSIDE if the prompt ends inside it, else _BEFORE.
stint_status st_chat_prompt_thinking(const struct st_chat *chat, const json_t *messages,
                                     const json_t *tools, enum st_chat_thinking thinking,
                                     char **text, enum st_reasoning_phase *answer);

#endif

// SPDX-License-Identifier: Apache-2.0
// Tools for chat formats that know none: a system text describes them, and calls and results become
// ordinary messages.
#ifndef ST_CHAT_TOOL_TEXT_H
#define ST_CHAT_TOOL_TEXT_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>

// plain: messages as st_chat_normalize makes them; tools: OpenAI's array or NULL; calls: whether
// calls and results are rewritten too. *changed is a new reference. STINT_E_NOMEM.
stint_status st_tool_text_write(const json_t *plain, const json_t *tools, bool calls,
                                json_t **changed);

#endif

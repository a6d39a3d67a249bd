// SPDX-License-Identifier: Apache-2.0
// Tool calls of answers. If a call is required, a schema made from those of the tools constrains
// the answer to the JSON {"name", "arguments"}. If the model may decide, the marks of its family
// tell.
#ifndef ST_SERVER_CALLS_H
#define ST_SERVER_CALLS_H

#include "server/api/choice.h"
#include "server/api/request.h"

// The schema that an answer must match; *schema is NULL if there is none, else a new reference.
// STINT_E_NOMEM.
stint_status st_calls_schema(const struct st_request *request, json_t **schema);

// Finds the calls of a choice that has ended, and fills choice->calls. STINT_E_NOMEM.
stint_status st_calls_find(const struct st_request *request, const struct st_chat *chat,
                           struct st_choice *choice);

#endif

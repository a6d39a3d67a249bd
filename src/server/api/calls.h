// SPDX-License-Identifier: Apache-2.0
// Tool calls of answers. Where one is required the answer can only be one, as JSON: {"name",
// "arguments"}, by a schema made of the tools'. Where it is the model's choice, its family's own
// marks tell.
#ifndef ST_SERVER_CALLS_H
#define ST_SERVER_CALLS_H

#include "server/api/choice.h"
#include "server/api/request.h"

// The schema that an answer must follow; NULL in *schema where none must. *schema is a new
// reference. STINT_E_NOMEM.
stint_status st_calls_schema(const struct st_request *request, json_t **schema);

// Finds the calls in a choice that has ended: choice->calls. STINT_E_NOMEM.
stint_status st_calls_find(const struct st_request *request, const struct st_chat *chat,
                           struct st_choice *choice);

#endif

// SPDX-License-Identifier: Apache-2.0
// The two halves of /v1/responses.
#ifndef ST_SERVER_RESPONSES_H
#define ST_SERVER_RESPONSES_H

#include "server/api/protocol.h"

bool st_responses_translate(const json_t *body, json_t **chat, struct st_problem *problem);

#endif

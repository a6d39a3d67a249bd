// SPDX-License-Identifier: Apache-2.0
// OpenAI's messages as published chat templates expect them.
#ifndef ST_CHAT_MESSAGES_H
#define ST_CHAT_MESSAGES_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>

// Templates differ in what they take, and none says so: each of these is tried where one fails.
enum {
    ST_CHAT_EMPTY_CONTENT = 1,  // null content is ""
    ST_CHAT_TEXT_ARGUMENTS = 2, // arguments of calls are JSON text, not objects
    ST_CHAT_FOLD_SYSTEM = 4,    // the system message begins the first user message
    ST_CHAT_ALL_WAYS = 8,
};

// The messages checked and in their simplest form: content a string or null, arguments objects
// where they are the text of one, no other null members. *ways: the bits above that would change
// something. *plain is a new reference. STINT_E_ARG, STINT_E_UNSUPPORTED, STINT_E_NOMEM.
stint_status st_chat_normalize(const json_t *messages, json_t **plain, unsigned *ways);

// A new array in which those ways are gone.
stint_status st_chat_vary(const json_t *plain, unsigned ways, json_t **varied);

#endif

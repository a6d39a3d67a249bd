// SPDX-License-Identifier: Apache-2.0
// Converts OpenAI's messages to the form that published chat templates expect.
#ifndef ST_CHAT_MESSAGES_H
#define ST_CHAT_MESSAGES_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>

// Templates differ in the form that they accept, and do not say which. If one fails, each of these
// variants is tried.
enum {
    ST_CHAT_EMPTY_CONTENT = 1,  // null content is ""
    ST_CHAT_TEXT_ARGUMENTS = 2, // arguments of calls are JSON text, not objects
    ST_CHAT_FOLD_SYSTEM = 4,    // the system message begins the first user message
    ST_CHAT_ALL_WAYS = 8,
};

// Checks the messages and simplifies them: content is a string or null, arguments that are the text
// of an object become that object, and there are no other null members. *ways: the bits above that
// would change something. *plain is a new reference. STINT_E_ARG, STINT_E_UNSUPPORTED,
// STINT_E_NOMEM.
stint_status st_chat_normalize(const json_t *messages, json_t **plain, unsigned *ways);

// A new array with those variants applied.
stint_status st_chat_vary(const json_t *plain, unsigned ways, json_t **varied);

#endif

// SPDX-License-Identifier: Apache-2.0
// Refuses requests that two programs in a row may read differently: where the body ends, which host
// is meant, or what the path is. What a proxy in front of this server takes for one request must
// not be two of them here.
#ifndef ST_SERVER_HEADERS_H
#define ST_SERVER_HEADERS_H

#include "server/api/problem.h"

#include <microhttpd.h>

// True if a request's target, before it is decoded, has no blanks, control characters or %00.
bool st_headers_plain_target(const char *target);

// Fills *problem with the first ambiguity: a header that may stand once but stands twice, a body
// with a length and in chunks, an unknown transfer coding, a length that is not a plain number, or
// bytes that no header may have. `http_1_1`: Transfer-Encoding is defined.
bool st_headers_check(struct MHD_Connection *connection, bool http_1_1, struct st_problem *problem);

// True if a body follows the headers.
bool st_headers_announce_body(struct MHD_Connection *connection);

#endif

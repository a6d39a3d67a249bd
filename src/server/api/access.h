// SPDX-License-Identifier: Apache-2.0
// Who may ask: the key, and what keeps other sites' pages in a browser of this machine away.
#ifndef ST_SERVER_ACCESS_H
#define ST_SERVER_ACCESS_H

#include "server/api/problem.h"

struct st_access {
    const char *key;  // NULL: none is asked for
    bool local;       // listens on this machine alone: Host must name it
    const char *cors; // the origin whose pages may ask, "*": all; NULL: only our own
};

// Whether `header` is "Bearer KEY". Takes as long whichever byte is wrong. NULL is no header.
bool st_access_key(const struct st_access *access, const char *header);

// Host headers that a page of another site cannot have sent: a name that it points at 127.0.0.1
// (DNS rebinding) is refused, whatever the port, which ssh or a container may have changed. NULL,
// as HTTP/1.0 and programs may send it, is fine.
bool st_access_host(const struct st_access *access, const char *host);

// Whether a page of this origin may ask: none told, the one that the request goes to, or the
// permitted one. Also stops what a browser sends to other sites without asking them first.
bool st_access_origin(const struct st_access *access, const char *origin, const char *host);

// Fills *problem with the first that is wrong; `key` tells if one is needed for this route.
bool st_access_check(const struct st_access *access, bool key, const char *authorization,
                     const char *host, const char *origin, struct st_problem *problem);

#endif

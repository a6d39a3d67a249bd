// SPDX-License-Identifier: Apache-2.0
// Access control: the key, and the checks that keep out pages of other sites in a local browser.
#ifndef ST_SERVER_ACCESS_H
#define ST_SERVER_ACCESS_H

#include "server/api/problem.h"

struct st_access {
    const char *key;  // NULL: no key is needed
    bool local;       // listens only on this machine: Host must name it
    const char *cors; // the origin whose pages are permitted, "*": all; NULL: only our own page
};

// True if `header` is "Bearer KEY". The time does not depend on which byte is wrong. NULL: no
// header.
bool st_access_key(const struct st_access *access, const char *header);

// Tells clients with different keys from each other, also where no key is needed. NULL: no header.
uint64_t st_access_owner(const char *header);

// True for Host headers that a page of another site cannot send: names that such a site points at
// 127.0.0.1 (DNS rebinding) are refused. Any port is accepted, since ssh or a container may change
// it. NULL (no header, as in HTTP/1.0) is accepted.
bool st_access_host(const struct st_access *access, const char *host);

// True if a page of this origin may send requests: no origin, the server's own, or the permitted
// one. This also stops requests that browsers send to other sites without a preflight.
bool st_access_origin(const struct st_access *access, const char *origin, const char *host);

// Fills *problem with the first violation; `key`: this route needs a key.
bool st_access_check(const struct st_access *access, bool key, const char *authorization,
                     const char *host, const char *origin, struct st_problem *problem);

#endif

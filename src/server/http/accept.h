// SPDX-License-Identifier: Apache-2.0
// Accepts clients in a thread of its own and hands each on while there are places; others wait in
// the system's queue. The HTTP library could accept itself, but not stop: in libmicrohttpd 0.9.75
// MHD_quiesce_daemon() and the library's threads may both take the listening socket out of an epoll
// set, and whoever is second aborts the process.
#ifndef ST_SERVER_ACCEPT_H
#define ST_SERVER_ACCEPT_H

#include "base/status.h"

#include <sys/socket.h>

struct st_accept;

// Takes over a client's socket, which does not block. False: it has closed it already.
typedef bool st_accept_fn(void *context, int client, const struct sockaddr *address,
                          socklen_t n_address);

// Takes over a listening socket that does not block, on failure too. *accept is set before the
// first client is taken.
stint_status st_accept_open(int listening, size_t n_places, st_accept_fn *take, void *context,
                            struct st_accept **accept);
// Returns when no more clients are accepted; those in the system's queue are reset.
void st_accept_stop(struct st_accept *accept);
// Stops and frees. Accepts NULL. pre: nothing begins or ends any more
void st_accept_close(struct st_accept *accept);

// A client that was taken is served from now on; it no longer is, and its place is free.
void st_accept_began(struct st_accept *accept);
void st_accept_ended(struct st_accept *accept);

#endif

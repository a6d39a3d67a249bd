// SPDX-License-Identifier: Apache-2.0
// The socket that a server listens on.
#ifndef ST_SERVER_LISTEN_H
#define ST_SERVER_LISTEN_H

#include "base/status.h"

// Binds and listens on a name or address; port 0: a free one. *port and *socket, which does not
// block, are filled in. STINT_E_IO with the reason.
stint_status st_listen(const char *host, uint16_t port, uint16_t *bound, int *socket);

// True if every address of this name belongs to this machine only; false if it has no address.
bool st_listen_is_local(const char *host);

#endif

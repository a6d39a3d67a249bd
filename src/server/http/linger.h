// SPDX-License-Identifier: Apache-2.0
// Sockets whose connections are over, and whose clients still send a body that was refused. A
// socket that is closed with unread bytes is reset, which may take the reply from the client; so
// the bytes are read and dropped until the client closes, within bounds.
#ifndef ST_SERVER_LINGER_H
#define ST_SERVER_LINGER_H

#include <stdint.h>

struct st_linger;

enum { ST_LINGER_EVENT = 1 }; // the number that its epoll events carry

struct st_linger *st_linger_open(void);         // NULL without memory
void st_linger_close(struct st_linger *linger); // accepts NULL

// Reads from a duplicate of the socket until then; `epoll` wakes for its bytes. The oldest one has
// to go if there are too many.
void st_linger_add(struct st_linger *linger, int epoll, int file, uint64_t until_ns);

// Reads and drops what has arrived.
void st_linger_read(struct st_linger *linger, uint64_t now_ns);

#endif

// SPDX-License-Identifier: Apache-2.0
// Watches the sockets of clients in its own thread, for events that the HTTP library misses: a
// client that disconnects while its answer is in progress (the connection is suspended then), one
// that does not read, one that takes too long to send its request, and silent connections while
// connections run out.
#ifndef ST_SERVER_WATCH_H
#define ST_SERVER_WATCH_H

#include "server/api/answer.h"

struct st_watch;

// One connection; lives from st_watch_add to st_watch_remove.
struct st_watched {
    struct st_watched *next, *before;
    struct st_watch *watch;
    int file;
    uint64_t deadline_ns;     // 0: none
    uint64_t silent_ns;       // since then no complete header has come; 0: one has
    struct st_answer *answer; // in progress; NULL: none
    bool slow;                // the client does not read
    bool gone;                // its answer was canceled
};

// With more than `crowd` connections, each may be silent only for `patience` seconds.
stint_status st_watch_open(size_t crowd, double patience, struct st_watch **watch);
void st_watch_close(struct st_watch *watch); // accepts NULL; pre: nothing is watched

// A new connection counts as silent.
void st_watch_add(struct st_watch *watch, struct st_watched *watched, int file);
void st_watch_remove(struct st_watched *watched);

// Sets the deadline: unless this is called again within so many seconds, the client gets an error
// and the connection is shut down. 0: no deadline. pre: with a deadline, no reply has begun.
void st_watch_deadline(struct st_watched *watched, double seconds);

// The header of a request has arrived, or that request has ended and the next one may come.
void st_watch_silent(struct st_watched *watched, bool silent);

// Cancels the answer when the client disconnects or is reported as slow. NULL: stops that.
void st_watch_answer(struct st_watched *watched, struct st_answer *answer);
void st_watch_slow(struct st_watched *watched);
// True if that happened.
bool st_watch_gone(struct st_watched *watched);

// Cancels all answers.
void st_watch_cancel_all(struct st_watch *watch);

#endif

// SPDX-License-Identifier: Apache-2.0
// Watches the sockets of clients in its own thread, for events that the HTTP library misses: a
// client that disconnects while its answer is in progress (the connection is suspended then), one
// that does not read, one that takes too long to send its request, and the slowest senders while
// connections run out. It also reads what refused clients still send (linger.h).
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
    uint64_t waits_ns;        // since then its request is incomplete, less the time that its bytes
                              // may take; 0: it is complete
    struct st_answer *answer; // in progress; NULL: none
    uint64_t number;          // of the answer, in the order in which answers were watched; 0: none
    bool answered;            // it has had a reply: it may end without another
    bool slow;                // the client does not read
    bool gone;                // its answer was canceled
    bool lingers;             // its body was refused and may still arrive
};

struct st_watch_limits {
    size_t full;             // connections. With more than half of them in use,
    double patience;         // a request may take these seconds to arrive,
    double bytes_per_second; // and more for a body of this rate. With all of them in use, the
                             // slowest are closed at once
    double linger;           // seconds to read from clients whose body was refused
};
stint_status st_watch_open(const struct st_watch_limits *limits, struct st_watch **watch);
void st_watch_close(struct st_watch *watch); // accepts NULL; pre: nothing is watched

// The request of a new connection is incomplete.
void st_watch_add(struct st_watch *watch, struct st_watched *watched, int file);
// pre: the socket is still open
void st_watch_remove(struct st_watched *watched);

// The connection's next request is incomplete. It has so many seconds to arrive; then the client
// gets an error and the connection is shut down. pre: no reply is being sent.
void st_watch_deadline(struct st_watched *watched, double seconds);

// So many bytes of the body have arrived; the request is complete, or what is missing does not
// matter, which also ends the deadline.
void st_watch_progress(struct st_watched *watched, size_t n_bytes);
void st_watch_complete(struct st_watched *watched);

// When the connection is removed, its socket is read for a while.
void st_watch_linger(struct st_watched *watched);

// Cancels the answer when the client disconnects or is reported as slow. NULL: stops that.
void st_watch_answer(struct st_watched *watched, struct st_answer *answer);
void st_watch_slow(struct st_watched *watched);
// True if that happened.
bool st_watch_gone(struct st_watched *watched);

// Sends the problem, in place of the answer or at the end of its stream, to every client that waits
// for one, and shuts its connection down.
void st_watch_tell_all(struct st_watch *watch, const struct st_problem *problem);

// Cancels all answers.
void st_watch_cancel_all(struct st_watch *watch);

#endif

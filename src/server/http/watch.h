// SPDX-License-Identifier: Apache-2.0
// Watches the sockets of clients from a thread of its own, where the HTTP library does not look:
// a client that went away while its answer is in work (the library sleeps on such a connection),
// one that does not read, one that takes longer than allowed to send its request, and those that
// keep a place and say nothing while places run out.
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
    uint64_t silent_ns;       // since when no whole header of a request has come; 0: one has
    struct st_answer *answer; // in work; NULL: none
    bool slow;                // does not read
    bool gone;                // its answer was canceled
};

// With more than `crowd` connections each may be silent for `patience` seconds only.
stint_status st_watch_open(size_t crowd, double patience, struct st_watch **watch);
void st_watch_close(struct st_watch *watch); // accepts NULL; pre: nothing is watched

// It is silent at first.
void st_watch_add(struct st_watch *watch, struct st_watched *watched, int file);
void st_watch_remove(struct st_watched *watched);

// The connection is told so and shut down unless this is called again within so many seconds; 0:
// any time. pre: with a deadline, no reply has begun.
void st_watch_deadline(struct st_watched *watched, double seconds);

// The header of a request has come; or that request is over and the next one may come.
void st_watch_silent(struct st_watched *watched, bool silent);

// Cancels the answer when the client goes away or is reported to be slow. NULL: no more.
void st_watch_answer(struct st_watched *watched, struct st_answer *answer);
void st_watch_slow(struct st_watched *watched);
// Whether that happened.
bool st_watch_gone(struct st_watched *watched);

// Cancels all answers.
void st_watch_cancel_all(struct st_watch *watch);

#endif

// SPDX-License-Identifier: Apache-2.0
// A completion request while the engine works on it: all its choices, and for a stream the text
// that waits to be sent, which is bounded: a client that does not read ends its own answer.
// The engine's thread fills it, the server's threads empty it; it lives until both let go.
#ifndef ST_SERVER_ANSWER_H
#define ST_SERVER_ANSWER_H

#include "server/api/metrics.h"
#include "server/api/request.h"
#include "server/api/response.h"

enum { ST_ANSWER_MAX_WAITING = 512 << 10 }; // bytes of a stream that were not read yet

struct st_answer;

// What one choice begins from; ids are borrowed during the call.
struct st_answer_prompt {
    const int32_t *ids;
    size_t n;
};

struct st_answer_options {
    struct st_engine *engine;
    const struct st_chat *chat;
    struct st_metrics *metrics;
    const struct st_response *response; // copied
    struct st_request *request;         // taken, also on failure
    struct st_constraint *constraint;   // the same; may be NULL
    enum st_reasoning_phase reasoning;  // how each choice begins
    const struct st_answer_prompt *prompts;
    size_t n_prompts;
};

// Submits all choices, or none: 429 where the queue is full. *answer is one reference.
bool st_answer_open(const struct st_answer_options *options, struct st_answer **answer,
                    struct st_problem *problem);
void st_answer_hold(struct st_answer *answer);
void st_answer_release(struct st_answer *answer); // accepts NULL

// Ends its choices soon. Not from the engine's thread.
void st_answer_cancel(struct st_answer *answer);

// Called once when there is something to do after st_answer_wait() said to wait: something to read,
// or the end. `flooded`: the client is too slow; cancel it from another thread. Both from any
// thread, with the answer locked. NULL ends the calls.
struct st_answer_watcher {
    void (*wake)(void *context);
    void (*flooded)(void *context);
    void *context;
};
void st_answer_watch(struct st_answer *answer, const struct st_answer_watcher *watcher);

bool st_answer_streams(const struct st_answer *answer);
bool st_answer_failed(struct st_answer *answer); // or was canceled

// Waits unless there is something to do: calls `sleep` (with the answer locked, so that no wake can
// be lost) and returns true.
bool st_answer_wait(struct st_answer *answer, void (*sleep)(void *context), void *context);

// Copies what waits of a stream, at most n bytes. 0: nothing yet; -1: it is over; -2: broken off.
int64_t st_answer_read(struct st_answer *answer, char *to, size_t n);

// The whole of an answer that has ended; false with why there is none.
bool st_answer_write(struct st_answer *answer, struct st_json_text *out,
                     struct st_problem *problem);

#endif

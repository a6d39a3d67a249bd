// SPDX-License-Identifier: Apache-2.0
// A completion request in progress: all its choices and, for a stream, the text that waits to be
// sent. That text is bounded: a client that does not read ends its own answer. The thread of the
// request scheduler fills it, the server's threads empty it; it lives until both release it.
#ifndef ST_SERVER_ANSWER_H
#define ST_SERVER_ANSWER_H

#include "server/api/metrics.h"
#include "server/api/request.h"
#include "server/api/response.h"
#include "server/models/models.h"

enum { ST_ANSWER_MAX_WAITING = 512 << 10 }; // bytes of a stream that have not been read yet

struct st_answer;

// The prompt of one choice; ids are borrowed during the call.
struct st_answer_prompt {
    const int32_t *ids;
    size_t n;
};

struct st_answer_options {
    const struct st_served *served; // held by the caller; the answer holds it too
    struct st_metrics *metrics;
    const struct st_response *response; // copied
    struct st_request *request;         // taken over, even on failure
    struct st_constraint *constraint;   // taken over as well; may be NULL
    enum st_reasoning_phase reasoning;  // the phase in which each choice begins
    const struct st_answer_prompt *prompts;
    size_t n_prompts;
    // The one prompt is response->vectors.n texts of so many tokens each, to be embedded; borrowed
    // during the call. NULL: it is none.
    const size_t *texts;
    uint64_t owner; // see struct st_call
};

// Submits all choices, or none: 429 if the queue is full. *answer holds one reference.
bool st_answer_open(const struct st_answer_options *options, struct st_answer **answer,
                    struct st_problem *problem);
void st_answer_hold(struct st_answer *answer);
void st_answer_release(struct st_answer *answer); // accepts NULL

// Ends its choices soon. Not from the scheduler's thread.
void st_answer_cancel(struct st_answer *answer);

// `wake` is called once after st_answer_wait() said to wait, when there is something to read or the
// answer has ended. `flooded`: the client is too slow; cancel it from another thread. Both calls
// come from any thread, with the answer locked. NULL ends the calls.
struct st_answer_watcher {
    void (*wake)(void *context);
    void (*flooded)(void *context);
    void *context;
};
void st_answer_watch(struct st_answer *answer, const struct st_answer_watcher *watcher);

bool st_answer_streams(const struct st_answer *answer);
const char *st_answer_stream_type(const struct st_answer *answer); // the content type
bool st_answer_failed(struct st_answer *answer);                   // or was canceled

// If there is nothing to do, calls `sleep` (with the answer locked, so that no wake is lost) and
// returns true.
bool st_answer_wait(struct st_answer *answer, void (*sleep)(void *context), void *context);

// Copies the waiting text of a stream, at most n bytes. 0: nothing yet; -1: it has ended; -2: it
// was aborted.
int64_t st_answer_read(struct st_answer *answer, char *to, size_t n);

// The complete answer, which has ended; false with the reason in *problem.
bool st_answer_write(struct st_answer *answer, struct st_json_text *out,
                     struct st_problem *problem);

#endif

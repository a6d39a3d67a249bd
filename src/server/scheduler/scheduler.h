// SPDX-License-Identifier: Apache-2.0
// The request scheduler: runs requests on one session. The session's sequences are slots that are
// decoded as one batch; a request may join or leave the batch at any token. One thread computes. It
// runs prompts chunk by chunk between the decode steps of other requests, so that a long prompt
// delays them by one chunk at most.
#ifndef ST_SERVER_SCHEDULER_H
#define ST_SERVER_SCHEDULER_H

#include "generate/generator.h"
#include "server/scheduler/prefixes.h"

#include <jansson.h>

struct st_scheduler; // all calls are thread-safe

struct st_scheduler_options {
    const stint_model *model; // lives longer than the scheduler
    const stint_session_options
        *session;     // borrowed during the call; n_sequences is the number of slots
    uint32_t n_queue; // requests that may wait for a slot
    void (*lost)(void *context); // see struct st_server_loader; may be NULL
    void *context;
};

// Borrowed during st_scheduler_submit, except for the constraint: until the end event.
struct st_scheduler_request {
    const int32_t *prompt; // at least one
    size_t n_prompt;
    bool exact; // bit-identical whatever the slot was used for before: reuses only cache entries
                // that prefill kernels computed
    uint64_t owner; // only requests of the same one reuse what this one leaves in its slot
    bool echo;      // the prompt's tokens have events too, in front of the answer's; with logprobs
                    // each has its log-probability: of the first it is NaN
    bool no_answer; // ends behind the prompt, with ST_SCHEDULER_LENGTH
    // The prompt is n_texts texts of so many tokens each, to be embedded; 0: it is not.
    const size_t *texts;
    size_t n_texts;
    struct st_generator_options options; // the scheduler sets the model
};

enum st_scheduler_end {
    ST_SCHEDULER_GOES_ON,
    ST_SCHEDULER_STOPPED, // EOS or a stop text, or the constraint's text is complete
    ST_SCHEDULER_LENGTH,  // max_tokens or the context
    ST_SCHEDULER_CANCELED,
    ST_SCHEDULER_FAILED, // error_text says why
};

struct st_scheduler_usage {
    size_t prompt_tokens, reused_tokens, generated_tokens;
    double queue_seconds, prefill_seconds, decode_seconds;
    double first_token_seconds; // since the request was submitted
    double average_bits;
    double mean_logprob; // of the answer's tokens, with logprobs
    size_t drafted_tokens, accepted_tokens;           // computed as drafts; part of the answer
    size_t self_drafted_tokens, self_accepted_tokens; // of those, that fewer bits drafted
};

// A request has one event per token, then one end event. There may be no tokens.
struct st_scheduler_event {
    const struct st_token *token; // NULL: no token
    size_t n_made;                // bytes of text that the token made; some may be held back
    uint32_t bits;
    const char *text; // text that became certain, with reasoning and its marks: whole characters
                      // that are not part of a stop text
    size_t n_bytes;
    enum st_scheduler_end end;
    const struct st_scheduler_usage *usage; // at the end, else NULL
    const float *vectors; // at the end of a request with texts: [n_texts, config.embed]; else NULL
    stint_status status;  // of ST_SCHEDULER_FAILED
    const char *error_text;
};
// Called on the scheduler's thread or on the one that submits or cancels. It must be quick and must
// not call the scheduler.
typedef void st_scheduler_fn(void *context, const struct st_scheduler_event *event);

stint_status st_scheduler_open(const struct st_scheduler_options *options,
                               struct st_scheduler **scheduler);
// Saves what slots give up, and what they hold when the scheduler is closed, into a folder, and
// loads it for prompts that begin so. Once, before the first request. STINT_E_NOMEM.
stint_status st_scheduler_keep_prefixes(struct st_scheduler *scheduler,
                                        const struct st_prefixes *prefixes);
// Ends all requests (with ST_SCHEDULER_CANCELED).
void st_scheduler_close(struct st_scheduler *scheduler);
// Accepts no more requests and waits until none is left. False: some are left after `seconds`.
bool st_scheduler_drain(struct st_scheduler *scheduler, double seconds);

// `context` must live until the end event. STINT_E_LIMIT: the queue is full. STINT_E_ARG: a bad
// prompt (longer than the context, ids outside the vocabulary), sampling, stop text or bias.
// STINT_E_CANCELED: the scheduler drains or is closed.
stint_status st_scheduler_submit(struct st_scheduler *scheduler,
                                 const struct st_scheduler_request *request, st_scheduler_fn *fn,
                                 void *context, uint64_t *ticket);
// Ends a request soon; without effect if it has ended.
void st_scheduler_cancel(struct st_scheduler *scheduler, uint64_t ticket);

struct st_scheduler_stats {
    uint32_t slots, busy, queued, queue_size;
    // Since the scheduler was opened.
    uint64_t requests, rejected, prompt_tokens, reused_tokens, generated_tokens, decode_steps;
    uint64_t drafted_tokens, accepted_tokens, self_drafted_tokens, self_accepted_tokens;
    double prefill_seconds, decode_seconds;
    double bubble_rate; // of the last prefill
    stint_memory_info memory;
    uint64_t prefix_loads, prefix_saves; // files
    size_t context, chunk;
    const char *device;
};
void st_scheduler_stats(struct st_scheduler *scheduler, struct st_scheduler_stats *stats);
// Adds what is counted since a scheduler was opened, of another one.
void st_scheduler_stats_add(struct st_scheduler_stats *stats,
                            const struct st_scheduler_stats *other);
// The last request that ended, for the page's second view (docs/SERVER.md): a new reference, JSON
// null before the first.
json_t *st_scheduler_last(struct st_scheduler *scheduler);

// Writes a slot's tokens and KV cache to a file, or reads them back; the slot is the owner's then.
// STINT_E_ARG (no such slot, it is busy, or it holds nothing of this owner), E_LIMIT (the file
// would have more than max_bytes), E_IO, E_FORMAT.
stint_status st_scheduler_save(struct st_scheduler *scheduler, uint32_t slot, uint64_t owner,
                               uint64_t max_bytes, const char *path, size_t *n_tokens);
stint_status st_scheduler_restore(struct st_scheduler *scheduler, uint32_t slot, uint64_t owner,
                                  const char *path, size_t *n_tokens);

#endif

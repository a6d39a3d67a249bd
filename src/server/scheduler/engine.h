// SPDX-License-Identifier: Apache-2.0
// Runs requests on one session: its sequences are slots that are decoded as one batch, joined and
// left at any token. One thread computes; prompts go in chunk by chunk between the steps of
// answers, so that a long one stalls nobody for more than a chunk.
#ifndef ST_SERVER_ENGINE_H
#define ST_SERVER_ENGINE_H

#include "chat/reasoning.h"
#include "stint.h"

#include <jansson.h>

struct st_engine;     // any thread may call
struct st_constraint; // text/constraint.h

struct st_engine_options {
    const stint_model *model; // lives longer than the engine
    const stint_session_options
        *session;     // borrowed during the call; n_sequences is the number of slots
    uint32_t n_queue; // requests that may wait for a slot
};

enum { ST_ENGINE_MAX_TOP = 20, ST_ENGINE_MAX_STOPS = 8 };

// Added to a token's logit before it is sampled from; -infinity bans it.
struct st_engine_bias {
    int32_t id;
    float value;
};

// Borrowed during st_engine_submit, but the constraint until the end event.
struct st_engine_request {
    const int32_t *prompt; // at least one
    size_t n_prompt;
    uint32_t max_tokens;            // 0: until the context is full
    const stint_sampling *sampling; // has presence_penalty and frequency_penalty
    bool exact; // the same bits however the slot was used before: what other kernels computed is
                // not reused
    const char *stops[ST_ENGINE_MAX_STOPS]; // texts that end the answer and are no part of it
    uint32_t n_stops;
    const struct st_engine_bias *biases; // [n_biases], which must not ban all tokens
    size_t n_biases;
    bool logprobs;  // of what the model says, without penalties and biases
    uint32_t n_top; // alternatives that are told for each token, with logprobs
    const struct st_constraint *constraint; // or NULL
    enum st_reasoning_phase reasoning;      // how the answer begins: no stop text and no constraint
                                            // counts before its reasoning has ended
    bool special; // special tokens appear in the text, as the marks of calls do in some families
};

enum st_engine_end {
    ST_ENGINE_GOES_ON,
    ST_ENGINE_STOPPED, // EOS or a stop text, or the constraint's text is complete
    ST_ENGINE_LENGTH,  // max_tokens or the context
    ST_ENGINE_CANCELED,
    ST_ENGINE_FAILED, // error_text says why
};

struct st_engine_alternative {
    int32_t id;
    float logprob;
};

struct st_engine_usage {
    size_t prompt_tokens, reused_tokens, generated_tokens;
    double queue_seconds, prefill_seconds, decode_seconds,
        first_token_seconds; // the last: from submit on
    double average_bits;
};

// Each token, then one end (which may come without any token before it).
struct st_engine_event {
    int32_t id;    // of the token; -1: none came
    size_t n_made; // bytes of text that it made, of which some may not be certain yet
    uint32_t bits;
    float logprob;                           // with logprobs
    const struct st_engine_alternative *top; // [n_top], likeliest first
    uint32_t n_top;
    const char *text; // what became certain, reasoning and its marks included: whole characters
                      // that are no part of a stop text
    size_t n_bytes;
    enum st_engine_end end;
    const struct st_engine_usage *usage; // at the end, else NULL
    stint_status status;                 // of ST_ENGINE_FAILED
    const char *error_text;
};
// From the engine's thread, or from the one that submits or cancels; must be quick and not call the
// engine.
typedef void st_engine_fn(void *context, const struct st_engine_event *event);

stint_status st_engine_open(const struct st_engine_options *options, struct st_engine **engine);
// Ends what runs (with ST_ENGINE_CANCELED).
void st_engine_close(struct st_engine *engine);
// Takes no more requests and returns when none is left, or after so many seconds (false).
bool st_engine_drain(struct st_engine *engine, double seconds);

// `context` must live until the end event. STINT_E_LIMIT: the queue is full. STINT_E_ARG: the
// prompt (longer than the context, ids outside the vocabulary), the sampling, a stop text, biases.
// STINT_E_CANCELED: it drains or is closed.
stint_status st_engine_submit(struct st_engine *engine, const struct st_engine_request *request,
                              st_engine_fn *fn, void *context, uint64_t *ticket);
// Ends it soon; nothing happens where it has ended.
void st_engine_cancel(struct st_engine *engine, uint64_t ticket);

struct st_engine_stats {
    uint32_t slots, busy, queued, queue_size;
    uint64_t requests, rejected, prompt_tokens, reused_tokens, generated_tokens,
        decode_steps; // since it was opened
    double prefill_seconds, decode_seconds;
    double bubble_rate; // of the last prefill
    stint_memory_info memory;
    size_t context, chunk;
    const char *device;
};
void st_engine_stats(struct st_engine *engine, struct st_engine_stats *stats);
// The last request that ended, for the page's second view (docs/SERVER.md): a new reference, JSON
// null before the first.
json_t *st_engine_last(struct st_engine *engine);

// A slot's tokens and cache to a file and back, while nobody uses it. STINT_E_ARG (no such slot, or
// busy), E_IO, E_FORMAT.
stint_status st_engine_save(struct st_engine *engine, uint32_t slot, const char *path,
                            size_t *n_tokens);
stint_status st_engine_restore(struct st_engine *engine, uint32_t slot, const char *path,
                               size_t *n_tokens);

#endif

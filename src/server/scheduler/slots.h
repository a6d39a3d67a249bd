// SPDX-License-Identifier: Apache-2.0
// Slots: the sequences of a session, and the steps that the scheduler's thread runs on them.
#ifndef ST_SERVER_SLOTS_H
#define ST_SERVER_SLOTS_H

#include "server/scheduler/job.h"

enum st_slot_state {
    ST_SLOT_FREE,
    ST_SLOT_PROMPT, // its prompt is computed, chunk by chunk
    ST_SLOT_ANSWER, // takes part in steps
    ST_SLOT_TAKEN,  // is being saved or restored
};

enum { ST_SLOTS_SCORED = 64 }; // tokens of a prompt that are scored at once

struct st_slot {
    _Atomic enum st_slot_state state; // FREE and TAKEN change with the scheduler's lock held
    struct st_job *job;
    uint64_t used;       // st_slots.n_given when it was last given to a request
    uint64_t owner;      // of the tokens that it holds
    size_t reused;       // tokens that its request found in the cache
    uint32_t n_failures; // requests that failed here in a row
};

struct st_slots {
    struct stint_session *session;
    struct st_slot *slots; // [n]
    uint32_t n, turn;      // turn: the slot whose prompt is next
    uint64_t n_given;
    struct st_generator_scratch scratch;
    float *scores; // [ST_SLOTS_SCORED, vocab], allocated with the first prompt that is scored
    struct st_prefixes prefixes;
};

stint_status st_slots_open(const stint_model *model, const stint_session_options *options,
                           struct st_slots *slots);
void st_slots_close(struct st_slots *slots);

// Where a job is computed. The first `reused` tokens of its prompt are held by the slot `from`; if
// that is another one, they are copied.
struct st_slot_choice {
    uint32_t slot, from;
    size_t reused;
};

// Selects a free slot; false: none is free. It is the one that holds the most of the job's prompt,
// if that continues all that it holds. Otherwise it is an empty one, so that no conversation is
// given up for a beginning that it shares with others; without one, the one that holds the most if
// less would be lost than is reused, else the least recently used one.
bool st_slots_select(const struct st_slots *slots, const struct st_job *job,
                     struct st_slot_choice *choice);
void st_slots_give(struct st_slots *slots, const struct st_slot_choice *choice, struct st_job *job);

// Whether files are concerned before the job gets that slot: the slot gives up more than it keeps,
// or a file may hold more of the prompt than slots do. Not twice for a job.
bool st_slots_fetches(const struct st_slots *slots, const struct st_job *job,
                      const struct st_slot_choice *choice);
// Saves what the slot gives up, and loads the file that has the most of the prompt, if that is
// worth it. What fails is logged. pre: the slot is TAKEN
void st_slots_fetch(struct st_slots *slots, const struct st_slot_choice *choice,
                    const struct st_job *job, bool *saved, bool *loaded);
// Saves what a slot holds; true: there is a new file. pre: it computes nothing
bool st_slots_save_prefix(struct st_slots *slots, uint32_t slot);

// The slot's request ended by itself, or by a failure. What a request has computed before it failed
// may be the reason, so its tokens are dropped; after the second failure in a row all tokens are.
void st_slots_end(struct st_slots *slots, uint32_t slot, stint_status status);

// A request that ended in a step.
struct st_slot_end {
    uint32_t slot;
    enum st_scheduler_end end;
    stint_status status;
};

// The slot whose prompt is next, from slots->turn on; -1: none. Before its first piece it gets what
// other slots hold of it by now, so that none of them may be saved or loaded meanwhile.
int32_t st_slots_next_prompt(struct st_slots *slots);
// Runs the next piece of the slot's prompt: at most one chunk while other requests are in decode.
// After the last piece the slot decodes. STINT_E_CANCELED if the request was canceled meanwhile.
stint_status st_slots_prompt(struct st_slots *slots, uint32_t slot, enum st_scheduler_end *end);
// The same of a job that has texts to embed: at most `max` tokens of one of them (embed_texts.c).
stint_status st_slots_embed(struct st_slots *slots, uint32_t slot, size_t max,
                            enum st_scheduler_end *end);
// STINT_E_ARG: a text that is empty or longer than the context, or they are not the prompt.
stint_status st_scheduler_check_texts(const struct st_scheduler_request *request, size_t n_context);
// Runs one decode step of all slots that answer; those of equal precision form a batch. If a batch
// fails, each of its slots is tried alone, so that one does not end the others. Fills ends
// [slots->n] with the slots that ended and returns their number; adds the number of batches to
// *steps.
uint32_t st_slots_step(struct st_slots *slots, struct st_slot_end *ends, uint64_t *steps);
// Number of slots in a state.
uint32_t st_slots_count(const struct st_slots *slots, enum st_slot_state state);

#endif

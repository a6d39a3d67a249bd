// SPDX-License-Identifier: Apache-2.0
// The sequences of a session as slots, and the steps of the engine's thread over them.
#ifndef ST_SERVER_SLOTS_H
#define ST_SERVER_SLOTS_H

#include "server/scheduler/job.h"

enum st_slot_state {
    ST_SLOT_FREE,
    ST_SLOT_PROMPT, // its prompt goes in, chunk by chunk
    ST_SLOT_ANSWER, // takes part in steps
    ST_SLOT_TAKEN,  // is saved or restored at the moment
};

struct st_slot {
    _Atomic enum st_slot_state state; // FREE and TAKEN change with the engine's lock held
    struct st_job *job;
    uint64_t used; // the turn in which it was last given to a request
};

struct st_slots {
    struct stint_session *session;
    struct st_slot *slots; // [n]
    uint32_t n, turn;      // of the slot whose prompt is next
    uint64_t n_given;
    struct st_generator_scratch scratch;
    float *logits; // [most rows of a step, vocab]
};

stint_status st_slots_open(const stint_model *model, const stint_session_options *options,
                           struct st_slots *slots);
void st_slots_close(struct st_slots *slots);

// The free slot that holds most of the job's prompt, of equals the one that was used longest ago;
// -1: none is free. Sets *reused to the tokens of it that need not be computed again.
int32_t st_slots_choose(const struct st_slots *slots, const struct st_job *job, size_t *reused);
// Gives it the slot; it keeps the first `reused` tokens.
void st_slots_give(struct st_slots *slots, uint32_t slot, struct st_job *job, size_t reused);

// What became of a slot in a step.
struct st_slot_end {
    uint32_t slot;
    enum st_engine_end end;
    stint_status status;
};

// The slot whose prompt is next, from slots->turn on; -1: none.
int32_t st_slots_next_prompt(const struct st_slots *slots);
// Runs the next piece of its prompt, at most a chunk while others answer; after the last one it
// answers. STINT_E_CANCELED where that was asked for meanwhile.
stint_status st_slots_prompt(struct st_slots *slots, uint32_t slot, enum st_engine_end *end);
// One step of all that answer, those of equal precision together. Fills ends [slots->n] with those
// that ended and returns how many; *steps grows by the batches that ran.
uint32_t st_slots_step(struct st_slots *slots, struct st_slot_end *ends, uint64_t *steps);
// Number of slots in a state.
uint32_t st_slots_count(const struct st_slots *slots, enum st_slot_state state);

#endif

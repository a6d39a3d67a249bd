// SPDX-License-Identifier: Apache-2.0
// A request on its way through the engine: what was asked for, and what has come of it.
#ifndef ST_SERVER_JOB_H
#define ST_SERVER_JOB_H

#include "constraint/constraint.h"
#include "server/scheduler/engine.h"
#include "server/scheduler/record.h"
#include "session/session.h"

struct st_job {
    struct st_job *next; // in the queue
    uint64_t ticket;
    st_engine_fn *fn;
    void *context;
    int32_t *prompt; // [n_prompt]
    size_t n_prompt;
    bool exact;
    struct st_generator generator;
    bool canceled;      // under the engine's lock
    uint64_t submitted; // ns, as the next two: given a slot; last token
    uint64_t begun, last;
    uint64_t prefilled; // ns; 0: its prompt is not through
    size_t done;        // tokens of the prompt that are held
    stint_precision precision;
    int32_t next_id; // the newest token, not held yet
    struct st_engine_usage usage;
    struct st_record record;
};

// Copies the request. STINT_E_ARG, E_NOMEM.
stint_status st_job_open(const struct st_engine_request *request, const struct stint_model *model,
                         struct st_job **job);
void st_job_free(struct st_job *job); // accepts NULL

// Accepts a token that was picked, tells it, and says whether the answer ends with it. `bits` and
// `batch` are of the step that gave its logits.
enum st_engine_end st_job_accept(struct st_job *job, const struct st_token *token, uint32_t bits,
                                 uint32_t batch);
// How an answer ends that its generator has ended.
enum st_engine_end st_job_reason(const struct st_job *job);
// Tells the end, with the text that was held back unless it began a stop text.
void st_job_end(struct st_job *job, enum st_engine_end end, stint_status status,
                const char *error_text);

#endif

// SPDX-License-Identifier: Apache-2.0
// A request on its way through the engine: what was asked for, and what has come of it.
#ifndef ST_SERVER_JOB_H
#define ST_SERVER_JOB_H

#include "constraint/constraint.h"
#include "server/scheduler/engine.h"
#include "server/scheduler/record.h"
#include "session/session.h"
#include "tokenizer/tokenizer.h"

enum { ST_STOP_MAX_BYTES = 1024 };

struct st_job {
    struct st_job *next; // in the queue
    uint64_t ticket;
    st_engine_fn *fn;
    void *context;
    struct st_engine_request request; // its arrays and texts are the job's own
    stint_sampling sampling;
    bool canceled;      // under the engine's lock
    uint64_t submitted; // ns, as the next two: given a slot; last token
    uint64_t begun, last;
    uint64_t prefilled; // ns; 0: its prompt is not through
    size_t done;        // tokens of the prompt that are held
    stint_precision precision;
    int32_t next_id; // the newest token, not held yet
    double piece_begin;
    struct st_detokenizer detokenizer;
    char text[ST_STOP_MAX_BYTES + 2 * (ST_PIECE_MAX_BYTES + 8)]; // not certain yet
    size_t n_text;
    struct st_engine_usage usage;
    struct st_constraint_state *constraint; // or NULL
    struct st_reasoning reasoning;          // of all text that was made
    size_t n_certain;                       // bytes of it that were told
    struct st_record record;
};

// Copies the request. STINT_E_ARG, E_NOMEM.
stint_status st_job_open(const struct st_engine_request *request, struct st_job **job);
void st_job_free(struct st_job *job); // accepts NULL

// What the newest logits say, before they are sampled from.
struct st_job_logprobs {
    double log_sum;
    struct st_engine_alternative top[ST_ENGINE_MAX_TOP];
    uint32_t n_top;
};
void st_job_look(const struct st_job *job, const float *logits, size_t vocab,
                 struct st_job_logprobs *out);

// Takes a token that was sampled (of logit `logit` before that), tells it, and says whether the
// answer ends with it.
enum st_engine_end st_job_accept(struct st_job *job, const struct stint_session *session,
                                 int32_t id, float logit, const struct st_job_logprobs *logprobs,
                                 uint32_t batch);
// Tells the end, with the text that was held back unless it began a stop text.
void st_job_end(struct st_job *job, enum st_engine_end end, stint_status status,
                const char *error_text);

#endif

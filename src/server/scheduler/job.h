// SPDX-License-Identifier: Apache-2.0
// A job: a request on its way through the scheduler, with its state and its results.
#ifndef ST_SERVER_JOB_H
#define ST_SERVER_JOB_H

#include "constraint/constraint.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/record.h"
#include "session/pooled.h"

struct st_job {
    struct st_job *next; // in the queue
    uint64_t ticket;
    st_scheduler_fn *fn;
    void *context;
    int32_t *prompt; // [n_prompt]
    size_t n_prompt;
    bool exact;
    uint64_t owner;
    bool echo, no_answer;         // see st_scheduler_request
    struct st_detokenizer echoed; // the text of the prompt
    size_t *texts;                // see st_scheduler_request
    size_t n_texts, text;         // text: the one that is computed
    struct st_pooled pooled;      // of that text
    float *vectors;               // [n_texts, config.embed]; NULL: not begun
    struct st_generator generator;
    bool canceled;        // under the scheduler's lock
    bool fetched;         // prefixes on disk were looked at
    uint64_t submitted;   // ns, as the next three
    uint64_t begun, last; // given a slot; last token
    uint64_t prefilled;   // 0: its prompt is not finished
    size_t done;          // tokens of the prompt that the sequence holds
    stint_precision precision;
    float signal;    // of the logits before the next step (precision/signal.h)
    int32_t next_id; // the newest token; the sequence does not hold it yet
    struct st_scheduler_usage usage;
    struct st_record record;
};

// Copies the request. STINT_E_ARG, E_NOMEM.
stint_status st_job_open(const struct st_scheduler_request *request,
                         const struct stint_model *model, struct st_job **job);
void st_job_free(struct st_job *job); // accepts NULL

// Accepts a sampled token, sends its event, and returns whether the answer ends with it. `bits` and
// `batch` belong to the step that computed its logits.
enum st_scheduler_end st_job_accept(struct st_job *job, const struct st_token *token, uint32_t bits,
                                    uint32_t batch);
// Sends the events of prompt tokens [first, first + n). logits [n, vocab]: what the model said in
// front of each of them, or NULL: nothing.
void st_job_echo(struct st_job *job, size_t first, size_t n, const float *logits);
// The reason why the generator ended; GOES_ON if it has not.
enum st_scheduler_end st_job_reason(const struct st_job *job);
// Sends the end event, with the text that was held back, unless it is a stop text's beginning.
void st_job_end(struct st_job *job, enum st_scheduler_end end, stint_status status,
                const char *error_text);

#endif

// SPDX-License-Identifier: Apache-2.0
// Texts to embed: they pass a slot one after the other, each chunk by chunk between the steps of
// other requests.
#include "base/clock.h"
#include "base/size.h"
#include "server/scheduler/slots.h"

#include <stdlib.h>

// Memory for the vectors is taken when a slot is there for them: waiting requests have none.
static stint_status begin_text(struct st_slots *slots, uint32_t slot, struct st_job *job) {
    size_t width = slots->session->model->config.embed;
    if (!job->vectors) job->vectors = calloc(job->n_texts * width, sizeof *job->vectors);
    if (!job->vectors) return st_fail(STINT_E_NOMEM, "no memory for %zu embeddings", job->n_texts);
    job->pooled.vector = job->vectors + job->text * width;
    st_sequence_truncate(&slots->session->sequences[slot], 0);
    return STINT_OK;
}

static stint_status end_text(struct st_job *job, size_t width, enum st_scheduler_end *end) {
    ST_TRY(st_pooled_finish(width, &job->pooled));
    job->pooled.n = 0;
    if (++job->text < job->n_texts) return STINT_OK;
    job->prefilled = st_now_ns();
    job->usage.prefill_seconds = (double)(job->prefilled - job->begun) * 1e-9;
    *end = ST_SCHEDULER_STOPPED;
    return STINT_OK;
}

stint_status st_slots_embed(struct st_slots *slots, uint32_t slot, size_t max,
                            enum st_scheduler_end *end) {
    struct stint_session *s = slots->session;
    struct st_job *job = slots->slots[slot].job;
    size_t n_text = job->texts[job->text], n = st_min(max, n_text - job->pooled.n);
    if (job->pooled.n == 0) ST_TRY(begin_text(slots, slot, job));
    struct st_eval_request e = st_eval_request_of(s, slot, job->prompt + job->done, n);
    e.phase = ST_PHASE_PREFILL;
    e.n_total = n_text;
    e.pooled = &job->pooled;
    ST_TRY(st_session_eval(s, &e));
    job->done += n;
    return job->pooled.n < n_text ? STINT_OK : end_text(job, s->model->config.embed, end);
}

stint_status st_scheduler_check_texts(const struct st_scheduler_request *r, size_t n_context) {
    size_t sum = 0;
    for (size_t i = 0; i < r->n_texts; i++) {
        if (r->texts[i] == 0 || r->texts[i] > n_context)
            return st_fail(STINT_E_ARG, "text %zu has %zu tokens; it must have 1 to %zu", i,
                           r->texts[i], n_context);
        sum += r->texts[i]; // each is small, and there are less than 2^32
    }
    if (sum == r->n_prompt) return STINT_OK;
    return st_fail(STINT_E_ARG, "the texts have %zu tokens, the prompt %zu", sum, r->n_prompt);
}

// SPDX-License-Identifier: Apache-2.0
#include "server/scheduler/job.h"

#include "base/clock.h"
#include "base/size.h"
#include "server/scheduler/stops.h"

#include <stdlib.h>
#include <string.h>

static stint_status copy_stops(const struct st_engine_request *from, struct st_engine_request *to) {
    if (from->n_stops > ST_ENGINE_MAX_STOPS)
        return st_fail(STINT_E_ARG, "%u stop texts: at most %d", from->n_stops,
                       ST_ENGINE_MAX_STOPS);
    for (uint32_t i = 0; i < from->n_stops; i++) {
        size_t n = strlen(from->stops[i]);
        if (n == 0 || n > ST_STOP_MAX_BYTES)
            return st_fail(STINT_E_ARG, "a stop text has %zu bytes: expected 1 to %d", n,
                           ST_STOP_MAX_BYTES);
        to->stops[i] = strdup(from->stops[i]);
        if (!to->stops[i]) return st_fail(STINT_E_NOMEM, "no memory for a request");
        to->n_stops = i + 1;
    }
    return STINT_OK;
}

static stint_status copy_biases(const struct st_engine_request *from,
                                struct st_engine_request *to) {
    if (from->n_biases == 0) return STINT_OK;
    struct st_engine_bias *biases = calloc(from->n_biases, sizeof *biases);
    if (!biases) return st_fail(STINT_E_NOMEM, "no memory for a request");
    memcpy(biases, from->biases, from->n_biases * sizeof *biases);
    to->biases = biases;
    return STINT_OK;
}

static stint_status copy(const struct st_engine_request *from, struct st_job *job) {
    struct st_engine_request *to = &job->request;
    if (from->n_prompt == 0) return st_fail(STINT_E_ARG, "the prompt is empty");
    if (from->sampling)
        memcpy(&job->sampling, from->sampling, st_min(from->sampling->size, sizeof job->sampling));
    ST_TRY(st_sampling_check(&job->sampling));
    *to = *from;
    to->prompt = NULL;
    to->biases = NULL;
    to->n_stops = 0;
    to->sampling = &job->sampling;
    to->n_top = st_min(from->n_top, ST_ENGINE_MAX_TOP);
    int32_t *prompt = calloc(from->n_prompt, sizeof *prompt);
    if (!prompt) return st_fail(STINT_E_NOMEM, "no memory for a prompt of %zu", from->n_prompt);
    memcpy(prompt, from->prompt, from->n_prompt * sizeof *prompt);
    to->prompt = prompt;
    ST_TRY(copy_biases(from, to));
    return copy_stops(from, to);
}

stint_status st_job_open(const struct st_engine_request *request, struct st_job **job) {
    struct st_job *j = calloc(1, sizeof *j);
    if (!j) return st_fail(STINT_E_NOMEM, "no memory for a request");
    stint_status status = copy(request, j);
    if (status != STINT_OK) {
        st_job_free(j);
        return status;
    }
    j->submitted = st_now_ns();
    j->reasoning.phase = request->reasoning;
    j->usage.prompt_tokens = request->n_prompt;
    *job = j;
    return STINT_OK;
}

void st_job_free(struct st_job *job) {
    if (!job) return;
    for (uint32_t i = 0; i < job->request.n_stops; i++) free((char *)job->request.stops[i]);
    free((int32_t *)job->request.prompt);
    free((struct st_engine_bias *)job->request.biases);
    st_constraint_end(job->constraint);
    st_record_free(&job->record);
    free(job);
}

static void look_at(struct st_job_logprobs *out, uint32_t most, int32_t id, float logit) {
    uint32_t at = out->n_top;
    if (at == most && logit <= out->top[at - 1].logprob) return;
    if (at < most)
        out->n_top++;
    else
        at--;
    for (; at > 0 && out->top[at - 1].logprob < logit; at--) out->top[at] = out->top[at - 1];
    out->top[at] = (struct st_engine_alternative){id, logit};
}

void st_job_look(const struct st_job *job, const float *logits, size_t vocab,
                 struct st_job_logprobs *out) {
    uint32_t most = job->request.n_top;
    out->n_top = 0;
    out->log_sum = st_log_sum(logits, vocab);
    for (size_t i = 0; i < vocab && most; i++) look_at(out, most, (int32_t)i, logits[i]);
    for (uint32_t i = 0; i < out->n_top; i++)
        out->top[i].logprob = (float)((double)out->top[i].logprob - out->log_sum);
}

// Takes what is certain off the text.
static void tell(struct st_job *job, struct st_engine_event *event, size_t certain) {
    event->text = job->text;
    event->n_bytes = certain;
    job->fn(job->context, event);
    job->n_text -= certain;
    job->n_certain += certain;
    memmove(job->text, job->text + certain, job->n_text);
}

static void count_token(struct st_job *job, const struct stint_session *s, const char *text,
                        size_t n_bytes, uint32_t batch) {
    struct st_engine_usage *u = &job->usage;
    uint64_t now = st_now_ns(), since = u->generated_tokens ? job->last : job->submitted;
    double seconds = (double)(now - since) * 1e-9;
    if (u->generated_tokens == 0)
        u->first_token_seconds = seconds;
    else // the first came with the prompt
        u->average_bits +=
            ((double)s->newest_bits - u->average_bits) / (double)u->generated_tokens;
    u->generated_tokens++;
    u->decode_seconds = (double)(now - job->prefilled) * 1e-9;
    job->last = now;
    st_record_token(&job->record, text, n_bytes, s->newest_bits, batch, seconds);
}

// How much of the text is certain. Stop texts are looked for in the answer alone, and what may
// still be the mark in front of reasoning waits, since otherwise it is answer.
static size_t find_certain(const struct st_job *job, bool *found) {
    const struct st_engine_request *r = &job->request;
    size_t n_all = job->n_certain + job->n_text;
    size_t before = st_reasoning_before_answer(&job->reasoning, n_all);
    size_t skip = before > job->n_certain ? before - job->n_certain : 0;
    *found = false;
    if (job->reasoning.phase == ST_REASONING_BEFORE) return 0;
    return skip +
           st_stops_certain(r->stops, r->n_stops, job->text + skip, job->n_text - skip, found);
}

enum st_engine_end st_job_accept(struct st_job *job, const struct stint_session *s, int32_t id,
                                 float logit, const struct st_job_logprobs *logprobs,
                                 uint32_t batch) {
    const struct stint_tokenizer *tokenizer = s->model->tokenizer;
    if (st_model_stops(s->model, id)) return ST_ENGINE_STOPPED;
    char *text = job->text + job->n_text;
    uint32_t flags = job->request.special ? STINT_DETOKENIZE_SPECIAL : 0;
    size_t n = tokenizer ? st_detokenizer_push(&job->detokenizer, tokenizer, id, flags, text) : 0;
    count_token(job, s, text, n, batch);
    st_reasoning_push(&job->reasoning, text, n);
    job->n_text += n;
    job->next_id = id;
    bool found;
    size_t certain = find_certain(job, &found);
    struct st_engine_event event = {.id = id,
                                    .n_made = n,
                                    .bits = s->newest_bits,
                                    .logprob = (float)((double)logit - logprobs->log_sum),
                                    .top = logprobs->top,
                                    .n_top = logprobs->n_top};
    tell(job, &event, certain);
    if (found) {
        job->n_text = job->detokenizer.n_pending = 0; // the stop text and what follows it
        return ST_ENGINE_STOPPED;
    }
    bool full = job->request.n_prompt + job->usage.generated_tokens > s->n_context;
    bool enough = job->request.max_tokens && job->usage.generated_tokens >= job->request.max_tokens;
    return full || enough ? ST_ENGINE_LENGTH : ST_ENGINE_GOES_ON;
}

void st_job_end(struct st_job *job, enum st_engine_end end, stint_status status,
                const char *error_text) {
    struct st_engine_event event = {.id = -1,
                                    .end = end,
                                    .usage = &job->usage,
                                    .status = status,
                                    .error_text = error_text ? error_text : ""};
    st_constraint_end(job->constraint); // who is told may free what it borrows
    job->constraint = NULL;
    job->n_text += st_detokenizer_finish(&job->detokenizer, job->text + job->n_text);
    tell(job, &event, job->n_text);
}

// SPDX-License-Identifier: Apache-2.0
#include "server/scheduler/job.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static stint_status copy(const struct st_scheduler_request *from, const struct stint_model *model,
                         struct st_job *job) {
    struct st_generator_options options = from->options;
    if (from->n_prompt == 0) return st_fail(STINT_E_ARG, "the prompt is empty");
    options.model = model;
    ST_TRY(st_generator_open(&job->generator, &options));
    job->prompt = calloc(from->n_prompt, sizeof *job->prompt);
    if (!job->prompt)
        return st_fail(STINT_E_NOMEM, "no memory for a prompt of %zu", from->n_prompt);
    memcpy(job->prompt, from->prompt, from->n_prompt * sizeof *job->prompt);
    job->n_prompt = from->n_prompt;
    job->exact = from->exact;
    job->owner = from->owner;
    job->echo = from->echo;
    job->no_answer = from->no_answer;
    if (from->n_texts == 0) return STINT_OK;
    ST_TRY(st_pooled_kind(model, STINT_POOLING_DEFAULT, &job->pooled.kind));
    job->texts = calloc(from->n_texts, sizeof *job->texts);
    if (!job->texts) return st_fail(STINT_E_NOMEM, "no memory for %zu texts", from->n_texts);
    memcpy(job->texts, from->texts, from->n_texts * sizeof *job->texts);
    job->n_texts = from->n_texts;
    return STINT_OK;
}

stint_status st_job_open(const struct st_scheduler_request *request,
                         const struct stint_model *model, struct st_job **job) {
    struct st_job *j = calloc(1, sizeof *j);
    if (!j) return st_fail(STINT_E_NOMEM, "no memory for a request");
    stint_status status = copy(request, model, j);
    if (status != STINT_OK) {
        st_job_free(j);
        return status;
    }
    j->submitted = st_now_ns();
    j->usage.prompt_tokens = request->n_prompt;
    *job = j;
    return STINT_OK;
}

void st_job_free(struct st_job *job) {
    if (!job) return;
    st_generator_close(&job->generator);
    free(job->prompt);
    free(job->texts);
    free(job->vectors);
    st_record_free(&job->record);
    free(job);
}

static void count_token(struct st_job *job, const struct st_generated *generated, uint32_t bits,
                        uint32_t batch) {
    struct st_scheduler_usage *u = &job->usage;
    uint64_t now = st_now_ns(), since = u->generated_tokens ? job->last : job->submitted;
    double seconds = (double)(now - since) * 1e-9;
    if (u->generated_tokens == 0)
        u->first_token_seconds = seconds;
    else // the first came with the prompt
        u->average_bits += ((double)bits - u->average_bits) / (double)u->generated_tokens;
    u->generated_tokens++;
    u->decode_seconds = (double)(now - job->prefilled) * 1e-9;
    job->last = now;
    st_record_token(&job->record, generated->made, generated->n_made, bits, batch, seconds);
}

enum st_scheduler_end st_job_reason(const struct st_job *job) {
    if (!job->generator.ended) return ST_SCHEDULER_GOES_ON;
    stint_stop_reason reason = job->generator.reason;
    return reason == STINT_STOP_EOS || reason == STINT_STOP_TEXT ? ST_SCHEDULER_STOPPED
                                                                 : ST_SCHEDULER_LENGTH;
}

enum st_scheduler_end st_job_accept(struct st_job *job, const struct st_token *token, uint32_t bits,
                                    uint32_t batch) {
    struct st_generated generated;
    st_generator_accept(&job->generator, token, &generated);
    if (!generated.counts) return st_job_reason(job);
    count_token(job, &generated, bits, batch);
    job->next_id = token->id;
    struct st_scheduler_event event = {.token = token,
                                       .n_made = generated.n_made,
                                       .bits = bits,
                                       .text = generated.text,
                                       .n_bytes = generated.n_bytes};
    job->fn(job->context, &event);
    return st_job_reason(job);
}

void st_job_echo(struct st_job *job, size_t first, size_t n, const float *logits) {
    const struct stint_model *model = job->generator.options.model;
    char text[ST_PIECE_MAX_BYTES + 8];
    for (size_t i = first; i < first + n; i++) {
        struct st_token token = {.id = job->prompt[i], .logprob = NAN};
        if (logits)
            st_generator_score(&job->generator, logits + (i - first) * model->config.vocab, &token);
        struct st_scheduler_event event = {.token = &token, .text = text};
        // The text is what the client sent, without the mark that was put in front of it.
        if (i > 0 || token.id != st_tokenizer_bos(model->tokenizer))
            event.n_bytes = event.n_made = st_detokenizer_push(
                &job->echoed, model->tokenizer, token.id, STINT_DETOKENIZE_SPECIAL, text);
        job->fn(job->context, &event);
    }
    if (first + n < job->n_prompt) return;
    struct st_scheduler_event rest = {.text = text};
    rest.n_bytes = st_detokenizer_finish(&job->echoed, text);
    if (rest.n_bytes > 0) job->fn(job->context, &rest);
}

void st_job_end(struct st_job *job, enum st_scheduler_end end, stint_status status,
                const char *error_text) {
    job->usage.mean_logprob = st_generator_mean_logprob(&job->generator);
    struct st_scheduler_event event = {.end = end,
                                       .usage = &job->usage,
                                       .vectors = end == ST_SCHEDULER_STOPPED ? job->vectors : NULL,
                                       .status = status,
                                       .error_text = error_text ? error_text : ""};
    event.n_bytes = st_generator_finish(&job->generator, &event.text);
    job->fn(job->context, &event);
}

// SPDX-License-Identifier: Apache-2.0
#include "server/api/answer.h"

#include "base/size.h"
#include "generate/calls.h"
#include "constraint/constraint.h"
#include "server/api/protocol.h"
#include "session/pooled.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

// One choice, as its callback from the scheduler sees it.
struct running {
    struct st_answer *answer;
    uint64_t ticket;
    struct st_scheduler_usage usage;
    size_t n_echoed; // tokens of the prompt that are still to come
};

struct st_answer {
    const struct st_served *served;
    struct st_metrics *metrics;
    struct st_response response;
    struct st_request request;
    struct st_constraint *constraint;
    const size_t *texts; // only while it is submitted
    uint64_t owner;
    size_t n_submitted;
    atomic_uint holders;

    pthread_mutex_t lock; // protects everything that follows
    struct st_answer_watcher watcher;
    bool asleep, flooded;
    size_t n_ended;
    bool failed; // `problem` says why
    struct st_problem problem;
    struct st_json_text out; // of a stream
    struct st_stream_state state;
    struct st_response_usage so_far;
    size_t n_read;                 // of out
    size_t n_running;              // choices
    struct st_transcript *choices; // [n_running]
    float *vectors;                // of response.vectors
    struct running running[];      // [n_running]
};

void st_answer_hold(struct st_answer *answer) {
    atomic_fetch_add(&answer->holders, 1);
}

void st_answer_release(struct st_answer *answer) {
    if (answer == NULL || atomic_fetch_sub(&answer->holders, 1) != 1) return;
    for (size_t i = 0; i < answer->n_running; i++) st_transcript_free(&answer->choices[i]);
    free(answer->choices);
    free(answer->vectors);
    st_constraint_free(answer->constraint);
    st_request_free(&answer->request);
    st_bytes_free(&answer->out.bytes);
    st_models_release(answer->served);
    pthread_mutex_destroy(&answer->lock);
    free(answer);
}

static void wake(struct st_answer *answer) {
    if (!answer->asleep || answer->watcher.wake == NULL) return;
    answer->asleep = false;
    answer->watcher.wake(answer->watcher.context);
}

static void fail(struct st_answer *answer, int status, const char *text) {
    if (answer->failed) return;
    answer->failed = true;
    st_refuse(&answer->problem, status, NULL, "%s", text);
}

static struct st_response_usage usage_of(const struct st_answer *answer) {
    struct st_response_usage usage = {0};
    for (size_t i = 0; i < answer->n_running; i++) {
        const struct st_scheduler_usage *one = &answer->running[i].usage;
        usage.completion_tokens += one->generated_tokens;
        usage.accepted_tokens += one->accepted_tokens;
        usage.rejected_tokens += one->drafted_tokens - one->accepted_tokens;
        usage.queue_seconds += one->queue_seconds;
        usage.prefill_seconds += one->prefill_seconds;
        usage.decode_seconds += one->decode_seconds;
        usage.reasoning_tokens += st_transcript_reasoning_tokens(&answer->choices[i]);
        if (i % answer->request.best_of != 0) continue; // a prompt counts once
        usage.prompt_tokens += one->prompt_tokens;
        usage.cached_tokens += one->reused_tokens;
    }
    return usage;
}

// What may be a call waits for the end of the answer.
static size_t held_bytes(const struct st_answer *answer, struct st_transcript *choice) {
    size_t n;
    const char *text = st_transcript_answer(choice, &n);
    size_t before = choice->text.count - n;
    size_t told = choice->n_told > before ? choice->n_told - before : 0;
    if (answer->request.tools.choice == ST_TOOLS_NONE) return 0;
    if (answer->request.tools.choice == ST_TOOLS_REQUIRED) return n;
    return n - st_tool_calls_certain(answer->served->chat, text, told, n);
}

// The text around calls that was not streamed yet.
static const char *rest_of_content(const struct st_transcript *choice) {
    const char *content = choice->calls.content != NULL ? choice->calls.content : "";
    size_t n, n_content = strlen(content);
    const char *text = st_transcript_answer(choice, &n);
    size_t before = choice->text.count - n;
    size_t told = choice->n_told > before ? choice->n_told - before : 0;
    size_t blank = strspn(text, " \t\r\n");
    size_t from = told > blank ? told - blank : 0;
    bool same = from <= n_content && blank + from <= n && memcmp(content, text + blank, from) == 0;
    return same ? content + from : "";
}

static void stream_end(struct st_answer *answer, size_t index, struct st_transcript *choice) {
    struct st_json_text *out = &answer->out;
    if (choice->calls.n > 0)
        answer->response.protocol->calls(&answer->response, index, &choice->calls,
                                         rest_of_content(choice), out);
    answer->response.protocol->end(&answer->response, index, st_response_finish(choice), out);
}

static void stream_last(struct st_answer *answer) {
    const struct st_protocol *protocol = answer->response.protocol;
    struct st_response_usage usage = usage_of(answer);
    if (answer->failed)
        protocol->aborted(&answer->problem, &answer->out);
    else
        protocol->last(&answer->response, &usage, &answer->out);
    st_json_raw(&answer->out, protocol->done);
}

static void stream(struct st_answer *answer, size_t index, struct st_transcript *choice,
                   bool ended) {
    struct st_json_text *out = &answer->out;
    answer->response.protocol->thoughts(&answer->response, index, choice,
                                        st_transcript_thoughts(choice), out);
    if (choice->calls.n == 0) {
        choice->n_held = ended ? 0 : held_bytes(answer, choice);
        answer->response.protocol->piece(&answer->response, index, choice,
                                         st_transcript_news(choice), out);
    }
    if (ended && !answer->failed) stream_end(answer, index, choice);
    if (answer->n_ended == answer->n_running) stream_last(answer);
    if (out->failed) fail(answer, 503, "not enough memory for the answer");
    if (answer->flooded || out->bytes.count - answer->n_read <= ST_ANSWER_MAX_WAITING) return;
    answer->flooded = true;
    if (answer->watcher.flooded != NULL) answer->watcher.flooded(answer->watcher.context);
}

static stint_status find_calls(const struct st_answer *answer, struct st_transcript *choice) {
    size_t n;
    const char *text = st_transcript_answer(choice, &n);
    return st_calls_find(&answer->request.tools, answer->served->chat, text, n, &choice->calls);
}

static stint_status note(struct st_transcript *choice, const struct st_scheduler_event *event) {
    if (event->token != NULL) ST_TRY(st_transcript_token(choice, event->token, event->n_made));
    stint_status status = st_transcript_text(choice, event->text, event->n_bytes);
    if (event->end != ST_SCHEDULER_GOES_ON)
        st_transcript_end(choice,
                          event->end == ST_SCHEDULER_LENGTH ? STINT_STOP_LENGTH : STINT_STOP_EOS);
    return status;
}

static void take_vectors(struct st_answer *answer, const float *vectors) {
    struct st_response_vectors *ours = &answer->response.vectors;
    size_t bytes = ours->n * ours->width * sizeof *vectors;
    ours->data = answer->vectors = malloc(bytes);
    if (answer->vectors == NULL) {
        fail(answer, 503, "not enough memory for the embeddings");
        return;
    }
    memcpy(answer->vectors, vectors, bytes);
    for (size_t i = 0; i < ours->n && ours->dimensions < ours->width; i++) // finite, as the whole
        st_pooled_finish(ours->dimensions,
                         &(struct st_pooled){.vector = answer->vectors + i * ours->width});
}

static void take_end(struct st_answer *answer, struct st_transcript *choice,
                     const struct st_scheduler_event *event) {
    answer->n_ended++;
    if (event->usage != NULL) st_metrics_answer(answer->metrics, event->usage);
    if (event->end == ST_SCHEDULER_CANCELED) {
        fail(answer, 503, "the answer was aborted");
    } else if (event->end == ST_SCHEDULER_FAILED) {
        const char *text = event->error_text != NULL ? event->error_text : "the scheduler failed";
        // The request was good when it was submitted, so its client is not to blame.
        fail(answer, event->status == STINT_E_NOMEM ? 503 : 500, text);
    } else if (find_calls(answer, choice) != STINT_OK) {
        fail(answer, 503, st_error_text());
    }
}

static void take(void *context, const struct st_scheduler_event *event) {
    struct running *running = context;
    struct st_answer *answer = running->answer;
    size_t index = (size_t)(running - answer->running);
    struct st_transcript *choice = &answer->choices[index];
    bool ended = event->end != ST_SCHEDULER_GOES_ON;
    pthread_mutex_lock(&answer->lock);
    if (event->usage != NULL) running->usage = *event->usage;
    if (event->token != NULL && running->n_echoed > 0)
        running->n_echoed--;
    else if (event->token != NULL)
        answer->so_far.completion_tokens++;
    if (note(choice, event) != STINT_OK) fail(answer, 503, "not enough memory for the answer");
    if (ended) take_end(answer, choice, event);
    if (event->vectors != NULL) take_vectors(answer, event->vectors);
    if (answer->request.stream) stream(answer, index, choice, ended);
    bool news = answer->request.stream && answer->out.bytes.count > answer->n_read;
    if (news || answer->n_ended == answer->n_running) wake(answer);
    pthread_mutex_unlock(&answer->lock);
    if (ended) st_answer_release(answer);
}

static struct st_answer *make(const struct st_answer_options *options) {
    size_t n = options->n_prompts * options->request->best_of;
    struct st_answer *answer = calloc(1, sizeof *answer + n * sizeof *answer->running);
    struct st_transcript *choices = calloc(n, sizeof *choices);
    if (answer == NULL || choices == NULL) {
        free(answer);
        free(choices);
        return NULL;
    }
    answer->choices = choices;
    answer->state.choice = choices;
    answer->served = options->served;
    st_models_hold_again(answer->served);
    answer->metrics = options->metrics;
    answer->response = *options->response;
    answer->response.state = &answer->state;
    if (options->request->continuous_usage) answer->response.so_far = &answer->so_far;
    answer->request = *options->request;
    answer->constraint = options->constraint;
    answer->texts = options->texts;
    answer->owner = options->owner;
    answer->n_running = n;
    atomic_init(&answer->holders, 1);
    pthread_mutex_init(&answer->lock, NULL);
    for (size_t i = 0; i < options->n_prompts; i++)
        answer->so_far.prompt_tokens += options->prompts[i].n;
    for (size_t i = 0; i < n; i++) {
        answer->running[i].answer = answer;
        if (answer->request.echo)
            answer->running[i].n_echoed = options->prompts[i / answer->request.best_of].n;
        choices[i].reasoning.phase = options->reasoning;
        if (answer->request.stream)
            answer->response.protocol->role(&answer->response, i, &answer->out);
    }
    return answer;
}

static stint_status submit(struct st_answer *answer, size_t i,
                           const struct st_answer_prompt *prompt) {
    const struct st_request *request = &answer->request;
    stint_sampling sampling = request->sampling;
    sampling.seed +=
        i % request->best_of; // answers to a prompt differ; each equals a request with its seed
    sampling.biases = request->biases;
    sampling.n_biases = request->n_biases;
    bool special = request->suffix != NULL ||
                   st_calls_marks_special(answer->response.tokenizer, request->tools.list != NULL,
                                          answer->response.reasons);
    struct st_scheduler_request one = {
        .prompt = prompt->ids,
        .n_prompt = prompt->n,
        .exact = request->seeded,
        .owner = answer->owner,
        .echo = request->echo,
        .no_answer = request->no_answer,
        .texts = answer->texts,
        .n_texts = answer->response.vectors.n,
        .options = {.sampling = &sampling,
                    .max_tokens = request->max_tokens,
                    .ignore_eos = request->ignore_eos,
                    .stops = request->stops,
                    .n_stops = request->n_stops,
                    .logprobs = request->logprobs || request->best_of > request->n,
                    .n_top = request->n_top,
                    .constraint = answer->constraint,
                    .reasoning = answer->choices[i].reasoning.phase,
                    .special = special}};
    return st_scheduler_submit(answer->served->scheduler, &one, take, &answer->running[i],
                               &answer->running[i].ticket);
}

// Only the queue can be the reason: the prompt's length was checked before.
static bool refuse_submission(struct st_problem *problem, stint_status status) {
    if (status != STINT_E_LIMIT) return st_refuse_failure(problem, status, NULL);
    return st_refuse(problem, 429, NULL,
                     "all slots are busy and the queue is full; try again in a moment");
}

static bool submit_all(struct st_answer *answer, const struct st_answer_prompt *prompts,
                       struct st_problem *problem) {
    for (size_t i = 0; i < answer->n_running; i++) {
        st_answer_hold(answer); // until its end event
        stint_status status = submit(answer, i, &prompts[i / answer->request.best_of]);
        if (status != STINT_OK) {
            st_answer_release(answer);
            return refuse_submission(problem, status);
        }
        answer->n_submitted++;
    }
    return true;
}

bool st_answer_open(const struct st_answer_options *options, struct st_answer **out,
                    struct st_problem *problem) {
    struct st_answer *answer = make(options);
    if (answer == NULL) {
        st_constraint_free(options->constraint);
        st_request_free(options->request);
        return st_refuse(problem, 503, NULL, "not enough memory");
    }
    *options->request = (struct st_request){0};
    if (submit_all(answer, options->prompts, problem)) {
        *out = answer;
        return true;
    }
    st_answer_cancel(answer);
    st_answer_release(answer);
    return false;
}

void st_answer_cancel(struct st_answer *answer) {
    for (size_t i = 0; i < answer->n_submitted; i++)
        st_scheduler_cancel(answer->served->scheduler, answer->running[i].ticket);
}

void st_answer_watch(struct st_answer *answer, const struct st_answer_watcher *watcher) {
    pthread_mutex_lock(&answer->lock);
    answer->watcher = watcher != NULL ? *watcher : (struct st_answer_watcher){0};
    answer->asleep = false;
    pthread_mutex_unlock(&answer->lock);
}

bool st_answer_streams(const struct st_answer *answer) {
    return answer->request.stream;
}

const char *st_answer_stream_type(const struct st_answer *answer) {
    return answer->response.protocol->stream_type;
}

bool st_answer_failed(struct st_answer *answer) {
    pthread_mutex_lock(&answer->lock);
    bool failed = answer->failed;
    pthread_mutex_unlock(&answer->lock);
    return failed;
}

bool st_answer_wait(struct st_answer *answer, void (*sleep)(void *context), void *context) {
    pthread_mutex_lock(&answer->lock);
    bool news = answer->request.stream && answer->out.bytes.count > answer->n_read;
    bool waits = !news && answer->n_ended < answer->n_running;
    if (waits) {
        answer->asleep = true;
        sleep(context);
    }
    pthread_mutex_unlock(&answer->lock);
    return waits;
}

// Drops the part that was read, at once or when moving the rest is worth it.
static void forget_read(struct st_answer *answer) {
    struct st_bytes *bytes = &answer->out.bytes;
    size_t rest = bytes->count - answer->n_read;
    if (rest > 0 && answer->n_read < ST_ANSWER_MAX_WAITING) return;
    if (rest > 0) memmove(bytes->data, bytes->data + answer->n_read, rest);
    bytes->count = rest;
    answer->n_read = 0;
}

int64_t st_answer_read(struct st_answer *answer, char *to, size_t n) {
    pthread_mutex_lock(&answer->lock);
    struct st_bytes *bytes = &answer->out.bytes;
    n = st_min(n, bytes->count - answer->n_read);
    if (n > 0) memcpy(to, bytes->data + answer->n_read, n);
    answer->n_read += n;
    forget_read(answer);
    int64_t result = (int64_t)n;
    if (answer->flooded || answer->out.failed)
        result = -2;
    else if (n == 0 && answer->n_ended == answer->n_running)
        result = -1;
    pthread_mutex_unlock(&answer->lock);
    return result;
}

// The likeliest answer to a prompt that is not `taken` (bit i: its i-th answer).
static size_t likeliest(const struct st_answer *answer, size_t prompt, uint64_t *taken) {
    const struct running *running = &answer->running[prompt * answer->request.best_of];
    size_t best = answer->request.best_of;
    for (size_t i = 0; i < answer->request.best_of; i++) {
        if (*taken >> i & 1) continue;
        if (best == answer->request.best_of ||
            running[i].usage.mean_logprob > running[best].usage.mean_logprob)
            best = i;
    }
    *taken |= (uint64_t)1 << best;
    return prompt * answer->request.best_of + best;
}

// The choices of all prompts, those of a prompt likeliest first. Their parts stay the answer's.
static struct st_transcript *select_choices(const struct st_answer *answer, size_t *n) {
    size_t n_prompts = answer->n_running / answer->request.best_of;
    *n = n_prompts * answer->request.n;
    struct st_transcript *selected = calloc(*n, sizeof *selected);
    for (size_t p = 0, at = 0; p < n_prompts && selected != NULL; p++) {
        uint64_t taken = 0;
        for (uint32_t i = 0; i < answer->request.n; i++)
            selected[at++] = answer->choices[likeliest(answer, p, &taken)];
    }
    return selected;
}

static bool write_whole(struct st_answer *answer, struct st_json_text *out,
                        struct st_problem *problem) {
    struct st_response_usage usage = usage_of(answer);
    size_t n = answer->n_running;
    struct st_transcript *choices = answer->choices, *selected = NULL;
    if (answer->request.best_of > answer->request.n) {
        choices = selected = select_choices(answer, &n);
        if (selected == NULL) return st_refuse(problem, 503, NULL, "not enough memory");
    }
    answer->response.protocol->whole(&answer->response, choices, n, &usage, out);
    free(selected);
    return true;
}

bool st_answer_write(struct st_answer *answer, struct st_json_text *out,
                     struct st_problem *problem) {
    pthread_mutex_lock(&answer->lock);
    bool ok = !answer->failed;
    if (ok)
        ok = write_whole(answer, out, problem);
    else
        *problem = answer->problem;
    pthread_mutex_unlock(&answer->lock);
    if (ok && out->failed) return st_refuse(problem, 503, NULL, "not enough memory");
    return ok;
}

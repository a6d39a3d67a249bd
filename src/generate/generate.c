// SPDX-License-Identifier: Apache-2.0
// stint_generate(): answers to one prompt, from the prompt to their last text. They are decoded as
// one batch, from which those that end leave.
#include "base/clock.h"
#include "generate/latency.h"
#include "generate/options.h"
#include "generate/rows.h"
#include "generate/teller.h"
#include "session/kv/copy.h"
#include "session/precision/precision.h"
#include "session/precision/signal.h"
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

static const char *const stop_names[] = {
    [STINT_STOP_LENGTH] = "length",     [STINT_STOP_EOS] = "eos",
    [STINT_STOP_CONTEXT] = "context",   [STINT_STOP_CALLBACK] = "callback",
    [STINT_STOP_CANCELED] = "canceled", [STINT_STOP_TEXT] = "text",
};

const char *stint_stop_reason_name(stint_stop_reason reason) {
    return (unsigned)reason < sizeof stop_names / sizeof *stop_names ? stop_names[reason]
                                                                     : "unknown";
}

struct answer {
    uint32_t sequence;
    struct st_sequence *held; // that goes on
    struct st_generator generator;
    struct st_teller teller;
    int32_t *ids; // [capacity] or NULL
    int32_t newest;
    float signal; // of the logits before the next step (precision/signal.h)
    bool ended;
    stint_generation_result result;
};

struct call {
    struct stint_session *s;
    stint_generation public;
    struct st_options options;
    struct st_generator_scratch scratch;
    size_t capacity; // of each answer's ids
    uint32_t n;
    struct answer *answers; // [n]
    uint64_t prefilled;     // when the prompt was
    struct st_latency steps;
};

// ---- The loop

// One token from logits [vocab]. The answer ends with it, or goes on.
static stint_status next(struct call *c, struct answer *a, float *logits) {
    struct st_generator *g = &a->generator;
    struct st_generated generated;
    struct st_token token;
    a->ended = true;
    a->signal = st_signal_read(c->s->precision.signal, logits, c->s->model->config.vocab);
    if (!st_generator_next(g, &c->scratch, logits, a->held->history, a->held->length, &token))
        return STINT_OK;
    a->ended = !st_generator_accept(g, &token, &generated);
    a->newest = token.id;
    if (!generated.counts) return STINT_OK;
    if (a->ids) a->ids[a->result.generated_tokens] = token.id;
    a->result.generated_tokens++;
    ST_TRY(st_teller_token(&a->teller, &token, &generated));
    a->ended |= a->teller.stopped;
    return STINT_OK;
}

// The rest of an answer. Canceling is an end like others.
static stint_status finish(struct call *c, struct answer *a, bool canceled) {
    const char *text;
    a->result.decode_seconds = (double)(st_now_ns() - c->prefilled) * 1e-9;
    a->result.stop_reason = a->generator.reason;
    if (canceled) a->result.stop_reason = STINT_STOP_CANCELED;
    if (a->teller.stopped) a->result.stop_reason = STINT_STOP_CALLBACK;
    a->result.mean_logprob = st_generator_mean_logprob(&a->generator);
    size_t n = st_generator_finish(&a->generator, &text);
    ST_TRY(st_teller_end(&a->teller, text, n, a->result.stop_reason));
    a->result.reasoning_tokens = st_transcript_reasoning_tokens(&a->teller.transcript);
    a->result.tool_calls = a->teller.transcript.calls.n;
    return STINT_OK;
}

// What a step gave text i of its rows.
static stint_status take_rows(struct call *c, struct st_rows *rows, size_t i, struct answer *a) {
    struct stint_session *s = c->s;
    const struct st_rows_text *text = &rows->texts[i];
    a->result.decode_steps++;
    a->result.drafted_tokens += text->n - 1;
    if (text->self) a->result.self_drafted_tokens += text->n - 1;
    do {
        double bits = s->newest_bits - a->result.average_bits;
        a->result.average_bits += bits / (double)a->generator.n_generated;
        float *logits = s->logits + (text->first + text->n_taken) * s->model->config.vocab;
        ST_TRY(next(c, a, logits));
    } while (!a->ended && st_rows_take(s, rows, i, a->newest));
    a->result.accepted_tokens += text->n_taken;
    if (text->self) a->result.self_accepted_tokens += text->n_taken;
    return a->ended ? finish(c, a, false) : STINT_OK;
}

// A step behind the newest tokens of answers that go on, all at the same precision.
static stint_status step(struct call *c, const uint32_t *group, size_t n, unsigned bits) {
    struct stint_session *s = c->s;
    struct st_rows rows = {.n_texts = n, .bits = bits, .scratch = &c->scratch};
    uint64_t begun = st_now_ns();
    for (size_t i = 0; i < n; i++) {
        const struct answer *a = &c->answers[group[i]];
        rows.texts[i] = (struct st_rows_text){.sequence = a->sequence,
                                              .newest = a->newest,
                                              .generator = &a->generator,
                                              .precision = &s->precision};
    }
    ST_TRY(st_rows_draft(s, &rows, s->logits));
    ST_TRY(st_rows_step(s, &rows, s->logits));
    for (size_t i = 0; i < n; i++) ST_TRY(take_rows(c, &rows, i, &c->answers[group[i]]));
    st_rows_end(s, &rows);
    st_latency_add(&c->steps, (double)(st_now_ns() - begun) * 1e-9);
    return STINT_OK;
}

// One step of every answer that goes on. *any: there was one.
static stint_status steps(struct call *c, bool *any) {
    unsigned bits[STINT_MAX_SEQUENCES];
    uint64_t waits = 0; // a bit per answer
    for (uint32_t i = 0; i < c->n; i++) {
        const struct answer *a = &c->answers[i];
        if (a->ended) continue;
        bits[i] = st_precision_at(&c->s->precision, a->generator.n_generated - 1, a->signal);
        waits |= (uint64_t)1 << i;
    }
    *any = waits != 0;
    while (waits) {
        uint32_t group[STINT_MAX_STEP_ROWS];
        size_t n = st_rows_group(c->s, bits, &waits, group);
        ST_TRY(step(c, group, n, bits[group[0]]));
    }
    return STINT_OK;
}

// Each answer's first token comes from the prompt's logits.
static stint_status begin(struct call *c) {
    struct stint_session *s = c->s;
    size_t vocab = s->model->config.vocab;
    for (uint32_t i = 0; i < c->n; i++) {
        struct answer *a = &c->answers[i];
        float *logits = s->logits;
        if (i + 1 < c->n) // picking a token changes them
            logits = memcpy(s->logits + vocab, s->logits, vocab * sizeof *logits);
        ST_TRY(st_generator_begin(&a->generator, &c->scratch, a->held->history, a->held->length,
                                  s->n_context));
        ST_TRY(next(c, a, logits));
        if (a->ended) ST_TRY(finish(c, a, false));
    }
    return STINT_OK;
}

static stint_status decode(struct call *c) {
    ST_TRY(begin(c));
    for (bool any = true; any;) ST_TRY(steps(c, &any));
    return STINT_OK;
}

// ---- The prompt

// Knows how much of a prompt was read when it is canceled.
static void hear_progress(void *context, const char *what, uint64_t done, uint64_t total) {
    struct call *c = context;
    c->answers[0].result.prompt_tokens = (size_t)done;
    if (c->public.progress) c->public.progress(c->public.progress_context, what, done, total);
}

static stint_status eval(struct call *c, const struct answer *a, const int32_t *ids, size_t n) {
    struct st_eval_request e = st_eval_request_of(c->s, a->sequence, ids, n);
    e.logits = c->s->logits;
    if (a == c->answers) {
        e.progress = hear_progress;
        e.progress_context = c;
    }
    return st_session_eval(c->s, &e);
}

// The other sequences get what the first one holds. Recurrent state is computed again.
static stint_status share(struct call *c) {
    struct stint_session *s = c->s;
    const struct st_sequence *first = c->answers[0].held;
    for (uint32_t i = 1; i < c->n; i++) {
        const struct answer *a = &c->answers[i];
        if (st_session_copies(s)) {
            st_session_copy(s, c->answers[0].sequence, a->sequence, first->length);
            continue;
        }
        st_sequence_truncate(a->held, 0);
        ST_TRY(eval(c, a, first->history, first->length));
    }
    return STINT_OK;
}

static stint_status prefill(struct call *c, const int32_t *prompt, size_t n_prompt) {
    struct stint_session *s = c->s;
    struct answer *a = c->answers;
    struct st_sequence before = *a->held, *now = a->held;
    if (n_prompt == 0) { // the last token that is held gives the first logits once more
        st_sequence_truncate(now, now->length - 1);
        prompt = &now->history[now->length];
        n_prompt = 1;
    }
    size_t n_new = a->result.prompt_tokens;
    a->result.prompt_tokens = 0;
    stint_status status = eval(c, a, prompt, n_prompt);
    if (status == STINT_OK) a->result.prompt_tokens = n_new;
    if (status == STINT_OK) status = share(c);
    if (status != STINT_OK) *now = before;
    if (status == STINT_OK && s->learned)
        st_learned_select(s->learned, s, a->sequence, &s->precision);
    return status;
}

static stint_status run(struct call *c, const int32_t *prompt, size_t n_prompt) {
    uint64_t start = st_now_ns();
    stint_status status = prefill(c, prompt, n_prompt);
    c->prefilled = st_now_ns();
    for (uint32_t i = 0; i < c->n; i++) {
        stint_generation_result *r = &c->answers[i].result;
        r->prefill_seconds = (double)(c->prefilled - start) * 1e-9;
        r->prompt_tokens = c->answers[0].result.prompt_tokens;
    }
    if (status == STINT_OK) status = decode(c);
    if (status != STINT_E_CANCELED) return status;
    for (uint32_t i = 0; i < c->n; i++)
        if (!c->answers[i].ended) ST_TRY(finish(c, &c->answers[i], true));
    return STINT_OK;
}

// ---- The call

static stint_status open_answer(struct call *c, uint32_t i, int32_t *ids) {
    struct answer *a = &c->answers[i];
    memset(a, 0, offsetof(struct answer, generator));
    memset(&a->teller, 0, sizeof *a - offsetof(struct answer, teller));
    a->sequence = c->public.sequence + i;
    a->held = &c->s->sequences[a->sequence];
    if (ids) a->ids = ids + i * c->capacity;
    struct st_generator_options options = c->options.generator;
    stint_sampling sampling = {.size = sizeof sampling};
    if (options.sampling)
        memcpy(&sampling, options.sampling, st_min(options.sampling->size, sizeof sampling));
    sampling.size = sizeof sampling;
    sampling.seed += i; // each is the answer to a call with its seed
    options.sampling = &sampling;
    options.logprobs |= c->n > 1;
    a->teller = (struct st_teller){.generation = &c->public,
                                   .tools = &c->options.tools,
                                   .chat = c->s->model->chat,
                                   .answer = i,
                                   .transcript.reasoning.phase = options.reasoning};
    return st_generator_open(&a->generator, &options);
}

static stint_status open_answers(struct call *c, int32_t *ids, uint32_t *n_open) {
    struct st_generator_options *options = &c->options.generator;
    ST_TRY(st_options_open(&c->public, c->s->model, &c->options));
    if (ids && (options->max_tokens == 0 || options->max_tokens > c->capacity))
        options->max_tokens = (uint32_t)st_min(c->capacity, UINT32_MAX);
    c->scratch.elementwise = c->s->kernels.elementwise;
    c->scratch.candidates = st_sampler_candidates(c->s->draws);
    for (; *n_open < c->n; ++*n_open) ST_TRY(open_answer(c, *n_open, ids));
    return STINT_OK;
}

static void close_answers(struct call *c, uint32_t n_open) {
    for (uint32_t i = 0; i < n_open; i++) {
        st_generator_close(&c->answers[i].generator);
        st_transcript_free(&c->answers[i].teller.transcript);
    }
    st_generator_scratch_close(&c->scratch);
    st_options_free(&c->options);
}

static void report(const struct call *c, stint_generation_result *results) {
    size_t size = results ? results[0].size : 0;
    for (uint32_t i = 0; i < c->n && results; i++) {
        stint_generation_result own = c->answers[i].result;
        own.size = size;
        own.step_median = st_latency_quantile(&c->steps, 0.5);
        own.step_p90 = st_latency_quantile(&c->steps, 0.9);
        own.step_p99 = st_latency_quantile(&c->steps, 0.99);
        memcpy((char *)results + i * size, &own, st_min(size, sizeof own));
    }
}

static stint_status check(const struct call *c, size_t n_prompt) {
    const struct stint_session *s = c->s;
    ST_TRY(st_session_check(s, c->public.sequence));
    if (c->n > s->n_sequences - c->public.sequence)
        return st_fail(STINT_E_ARG, "%u answers from sequence %u on: the session has %u sequences",
                       c->n, c->public.sequence, s->n_sequences);
    if (n_prompt == 0 && s->sequences[c->public.sequence].length == 0)
        return st_fail(STINT_E_ARG, "the prompt is empty: at least one token is needed");
    return STINT_OK;
}

static stint_status answer_all(struct call *c, const int32_t *prompt, size_t n_prompt, int32_t *ids,
                               stint_generation_result *results) {
    uint32_t n_open = 0;
    stint_status status = open_answers(c, ids, &n_open);
    if (status == STINT_OK) {
        c->answers[0].result.prompt_tokens = n_prompt;
        if (!ids || c->capacity) status = run(c, prompt, n_prompt);
    }
    if (status == STINT_OK) report(c, results);
    close_answers(c, n_open);
    atomic_store(&c->s->canceled, false);
    return status;
}

stint_status stint_generate(stint_session *session, const int32_t *prompt, size_t n_prompt,
                            const stint_generation *options, int32_t *ids, size_t capacity,
                            stint_generation_result *result) {
    if (!session || (!prompt && n_prompt))
        return st_fail(STINT_E_ARG, "session and prompt may not be NULL");
    struct call c = {.s = session, .capacity = capacity};
    if (options) memcpy(&c.public, options, st_min(options->size, sizeof c.public));
    c.n = c.public.n_answers ? c.public.n_answers : 1;
    ST_TRY(check(&c, n_prompt));
    struct answer one;
    c.answers = c.n == 1 ? &one : malloc(c.n * sizeof one);
    if (!c.answers) return st_fail(STINT_E_NOMEM, "no memory for %u answers", c.n);
    stint_status status = answer_all(&c, prompt, n_prompt, ids, result);
    if (c.n > 1) free(c.answers);
    return status;
}

// SPDX-License-Identifier: Apache-2.0
// stint_generate(): one answer of one sequence, from its prompt to its last text.
#include "base/clock.h"
#include "generate/options.h"
#include "generate/rows.h"
#include "generate/transcript.h"
#include "session/precision/precision.h"
#include "session/session.h"

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
    struct stint_session *s;
    struct st_sequence *held; // the one that goes on
    stint_generation public;
    struct st_options options;
    struct st_generator generator;
    struct st_generator_scratch scratch;
    struct st_transcript transcript; // of answers whose text has parts
    bool stopped;                    // by the callback
    int32_t *ids;
    size_t capacity;
    stint_generation_result result;
};

// ---- What the callback hears

static bool has_parts(const struct answer *a) {
    return a->public.reasoning != STINT_REASONING_NONE || a->options.tools.choice != ST_TOOLS_NONE;
}

// Tells a piece; `token` is NULL for text without one.
static void tell(struct answer *a, stint_text_kind kind, const char *text, size_t n,
                 const struct st_token *token) {
    stint_piece piece = {.kind = kind, .text = n > 0 ? text : "", .n_bytes = n, .id = -1};
    if (token) {
        piece.id = token->id;
        piece.logprob = token->logprob;
        piece.top = token->top;
        piece.n_top = token->n_top;
    }
    if (a->stopped || !a->public.text) return;
    a->stopped = !a->public.text(a->public.context, &piece);
}

static void tell_span(struct answer *a, stint_text_kind kind, struct st_piece span,
                      const struct st_token *token) {
    if (!token && span.to <= span.from) return;
    const char *text = a->transcript.text.data;
    tell(a, kind, text ? text + span.from : "", span.to - span.from, token);
}

// What is certain of reasoning and, unless it may be a call, of the answer.
static void tell_news(struct answer *a, bool with_answer, const struct st_token *token) {
    struct st_transcript *t = &a->transcript;
    struct st_piece thoughts = st_transcript_thoughts(t), news = {0};
    if (with_answer) news = st_transcript_news(t);
    bool thinks = t->reasoning.phase == ST_REASONING_INSIDE || thoughts.to > thoughts.from;
    if (thinks) tell_span(a, STINT_TEXT_REASONING, thoughts, token);
    tell_span(a, STINT_TEXT_ANSWER, news, thinks ? NULL : token);
}

static stint_status tell_token(struct answer *a, const struct st_token *token,
                               const struct st_generated *generated) {
    struct st_transcript *t = &a->transcript;
    if (!has_parts(a)) {
        tell(a, STINT_TEXT_ANSWER, generated->text, generated->n_bytes, token);
        return STINT_OK;
    }
    ST_TRY(st_transcript_token(t, token, generated->n_made));
    ST_TRY(st_transcript_text(t, generated->text, generated->n_bytes));
    tell_news(a, a->options.tools.choice == ST_TOOLS_NONE, token);
    return STINT_OK;
}

static void tell_calls(struct answer *a) {
    const struct st_tool_calls *calls = &a->transcript.calls;
    const char *content = calls->content ? calls->content : "";
    if (*content) tell(a, STINT_TEXT_ANSWER, content, strlen(content), NULL);
    for (size_t i = 0; i < calls->n && !a->stopped && a->public.text; i++) {
        const struct st_tool_call *call = &calls->calls[i];
        stint_piece piece = {.kind = STINT_TEXT_TOOL_CALL,
                             .text = call->arguments,
                             .n_bytes = strlen(call->arguments),
                             .id = -1,
                             .function = call->name};
        a->stopped = !a->public.text(a->public.context, &piece);
    }
}

// The text that was held back, and the calls in it.
static stint_status tell_end(struct answer *a) {
    struct st_transcript *t = &a->transcript;
    const char *text;
    size_t n = st_generator_finish(&a->generator, &text);
    if (!has_parts(a)) {
        if (n > 0) tell(a, STINT_TEXT_ANSWER, text, n, NULL);
        return STINT_OK;
    }
    ST_TRY(st_transcript_text(t, text, n));
    st_transcript_end(t, a->result.stop_reason);
    const char *answer = st_transcript_answer(t, &n);
    ST_TRY(st_calls_find(&a->options.tools, a->s->model->chat, answer, n, &t->calls));
    tell_news(a, t->calls.n == 0, NULL);
    if (t->calls.n > 0) tell_calls(a);
    a->result.reasoning_tokens = st_transcript_reasoning_tokens(t);
    a->result.tool_calls = t->calls.n;
    return STINT_OK;
}

// ---- The loop

// One token from logits [vocab]. *ended: it was the last one, or none came.
static stint_status next(struct answer *a, float *logits, int32_t *id, bool *ended) {
    struct st_generator *g = &a->generator;
    struct st_generated generated;
    struct st_token token;
    *ended = true;
    if (!st_generator_next(g, &a->scratch, logits, a->held->history, a->held->length, &token))
        return STINT_OK;
    *ended = !st_generator_accept(g, &token, &generated);
    *id = token.id;
    if (!generated.counts) return STINT_OK;
    if (a->ids) a->ids[a->result.generated_tokens] = token.id;
    a->result.generated_tokens++;
    ST_TRY(tell_token(a, &token, &generated));
    *ended |= a->stopped;
    return STINT_OK;
}

// A step behind the newest token *id, which gives another newest one.
static stint_status step(struct answer *a, int32_t *id, bool *ended) {
    struct stint_session *s = a->s;
    struct st_rows rows = {.n_texts = 1,
                           .bits = st_precision_at(&s->precision, a->generator.n_generated - 1),
                           .scratch = &a->scratch};
    struct st_rows_text *text = &rows.texts[0];
    *text = (struct st_rows_text){.sequence = a->public.sequence,
                                  .newest = *id,
                                  .generator = &a->generator,
                                  .precision = &s->precision};
    ST_TRY(st_rows_draft(s, &rows, s->logits));
    ST_TRY(st_rows_step(s, &rows, s->logits));
    a->result.decode_steps++;
    a->result.drafted_tokens += text->n - 1;
    if (text->self) a->result.self_drafted_tokens += text->n - 1;
    do {
        double bits = s->newest_bits - a->result.average_bits;
        a->result.average_bits += bits / (double)a->generator.n_generated;
        ST_TRY(next(a, s->logits + text->n_taken * s->model->config.vocab, id, ended));
    } while (!*ended && st_rows_take(s, &rows, 0, *id));
    a->result.accepted_tokens += text->n_taken;
    if (text->self) a->result.self_accepted_tokens += text->n_taken;
    st_rows_end(s, &rows);
    return STINT_OK;
}

static stint_status decode(struct answer *a) {
    int32_t id;
    bool ended;
    ST_TRY(st_generator_begin(&a->generator, &a->scratch, a->held->history, a->held->length,
                              a->s->n_context));
    ST_TRY(next(a, a->s->logits, &id, &ended));
    while (!ended) ST_TRY(step(a, &id, &ended));
    return STINT_OK;
}

// Knows how much of a prompt was read when it is canceled.
static void hear_progress(void *context, const char *what, uint64_t done, uint64_t total) {
    struct answer *a = context;
    a->result.prompt_tokens = (size_t)done;
    if (a->public.progress) a->public.progress(a->public.progress_context, what, done, total);
}

static stint_status prefill(struct answer *a, const int32_t *prompt, size_t n_prompt) {
    struct stint_session *s = a->s;
    struct st_sequence before = *a->held, *now = a->held;
    if (n_prompt == 0) { // the last token that is held gives the first logits once more
        st_sequence_truncate(now, now->length - 1);
        prompt = &now->history[now->length];
        n_prompt = 1;
    }
    struct st_eval_request e = st_eval_request_of(s, a->public.sequence, prompt, n_prompt);
    e.logits = s->logits;
    e.progress = hear_progress;
    e.progress_context = a;
    size_t n_new = a->result.prompt_tokens;
    a->result.prompt_tokens = 0;
    stint_status status = st_session_eval(s, &e);
    if (status == STINT_OK) a->result.prompt_tokens = n_new;
    if (status != STINT_OK) *now = before;
    if (status == STINT_OK && s->learned)
        st_learned_select(s->learned, s, a->public.sequence, &s->precision);
    return status;
}

// Canceling is an end like others: what is certain was told, and the rest is now.
static stint_status run(struct answer *a, const int32_t *prompt, size_t n_prompt) {
    uint64_t start = st_now_ns();
    stint_status status = prefill(a, prompt, n_prompt);
    uint64_t prefilled = st_now_ns();
    a->result.prefill_seconds = (double)(prefilled - start) * 1e-9;
    if (status == STINT_OK) status = decode(a);
    a->result.decode_seconds = (double)(st_now_ns() - prefilled) * 1e-9;
    if (status != STINT_OK && status != STINT_E_CANCELED) return status;
    a->result.stop_reason = a->generator.reason;
    if (status == STINT_E_CANCELED) a->result.stop_reason = STINT_STOP_CANCELED;
    if (a->stopped) a->result.stop_reason = STINT_STOP_CALLBACK;
    return tell_end(a);
}

static stint_status open_answer(struct answer *a) {
    ST_TRY(st_options_open(&a->public, a->s->model, &a->options));
    struct st_generator_options *options = &a->options.generator;
    if (a->ids && (options->max_tokens == 0 || options->max_tokens > a->capacity))
        options->max_tokens = (uint32_t)st_min(a->capacity, UINT32_MAX);
    a->transcript.reasoning.phase = options->reasoning;
    a->scratch.elementwise = a->s->kernels.elementwise;
    a->scratch.candidates = st_sampler_candidates(a->s->draws);
    stint_status status = st_generator_open(&a->generator, options);
    if (status != STINT_OK) st_options_free(&a->options);
    return status;
}

static void close_answer(struct answer *a) {
    st_generator_close(&a->generator);
    st_generator_scratch_close(&a->scratch);
    st_transcript_free(&a->transcript);
    st_options_free(&a->options);
}

stint_status stint_generate(stint_session *session, const int32_t *prompt, size_t n_prompt,
                            const stint_generation *options, int32_t *ids, size_t capacity,
                            stint_generation_result *result) {
    if (!session || (!prompt && n_prompt))
        return st_fail(STINT_E_ARG, "session and prompt may not be NULL");
    struct answer a;
    memset(&a, 0, offsetof(struct answer, generator));
    memset(&a.scratch, 0, sizeof a - offsetof(struct answer, scratch));
    a.s = session;
    a.ids = ids;
    a.capacity = capacity;
    if (options) memcpy(&a.public, options, st_min(options->size, sizeof a.public));
    ST_TRY(st_session_check(session, a.public.sequence));
    a.held = &session->sequences[a.public.sequence];
    if (n_prompt == 0 && a.held->length == 0)
        return st_fail(STINT_E_ARG, "the prompt is empty: at least one token is needed");
    ST_TRY(open_answer(&a));
    a.result.prompt_tokens = n_prompt;
    stint_status status = ids && capacity == 0 ? STINT_OK : run(&a, prompt, n_prompt);
    close_answer(&a);
    atomic_store(&session->canceled, false);
    if (status != STINT_OK) return status;
    if (result) {
        a.result.size = result->size;
        memcpy(result, &a.result, st_min(result->size, sizeof a.result));
    }
    return STINT_OK;
}

// SPDX-License-Identifier: Apache-2.0
// Evaluation of token ids and generation of text.
#include "session/session.h"

#include "base/clock.h"
#include "base/size.h"
#include "session/precision.h"
#include "text/tokenizer.h"

#include <string.h>

static const char *const stop_names[] = {
    [STINT_STOP_LENGTH] = "length",     [STINT_STOP_EOS] = "eos",
    [STINT_STOP_CONTEXT] = "context",   [STINT_STOP_CALLBACK] = "callback",
    [STINT_STOP_CANCELED] = "canceled",
};

const char *stint_stop_reason_name(stint_stop_reason reason) {
    return (unsigned)reason < sizeof stop_names / sizeof *stop_names ? stop_names[reason]
                                                                     : "unknown";
}

static stint_status check_ids(const struct stint_session *s, const int32_t *ids, size_t n) {
    uint32_t vocab = s->model->config.vocab;
    if (n > s->n_context - s->length)
        return st_fail(STINT_E_LIMIT,
                       "context: %zu tokens do not fit after %zu of %zu; open the session with a "
                       "longer context (--ctx)",
                       n, s->length, s->n_context);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= vocab)
            return st_fail(STINT_E_ARG,
                           "token %zu is %d: the model's vocabulary has %u; the tokenizer must be "
                           "the model's own",
                           i, (int)ids[i], vocab);
    return STINT_OK;
}

struct eval {
    const int32_t *ids;
    size_t n;
    bool all;
    float *logits;
    stint_progress_fn *progress;
    void *progress_context;
};

// Runs the next ids: a chunk; where prompts are split as many chunks as there are, or, where each
// one's hidden states are needed, as have buffers. *n gets their number.
static stint_status step(struct stint_session *s, const struct eval *e, size_t done, uint64_t total,
                         size_t *n) {
    const int32_t *ids = e->ids + done;
    *n = e->n - done;
    if (s->split.on && s->prompt && !s->bits) {
        if (e->logits && e->all) *n = st_min(*n, s->n_lanes * s->chunk_len);
        return st_split_forward(s, ids, *n, total);
    }
    *n = st_min(*n, s->chunk_len);
    struct st_batch batch = {*n, s->length, total};
    struct st_run run = st_session_run(s, &batch);
    return st_session_forward(&run, ids);
}

// Of rows [first, n) of a step, chunk by chunk.
static stint_status step_logits(struct stint_session *s, size_t first, size_t n, float *logits) {
    size_t vocab = s->model->config.vocab;
    for (size_t at = first; at < n;) {
        struct st_run run = st_session_run(s, NULL);
        size_t row = at % s->chunk_len, rows = st_min(s->chunk_len - row, n - at);
        run.lane = &s->lanes[at / s->chunk_len % s->n_lanes];
        ST_TRY(st_session_logits(&run, row, rows, logits + (at - first) * vocab));
        at += rows;
    }
    return STINT_OK;
}

static stint_status eval_batches(struct stint_session *s, const struct eval *e) {
    size_t vocab = s->model->config.vocab;
    uint64_t total = s->length + e->n;
    if (e->n > ST_DECODE_TOKENS) {
        s->timeline.n = 0;
        s->begun = s->length;
    }
    for (size_t done = 0, n; done < e->n; done += n) {
        s->prompt = e->n > ST_DECODE_TOKENS && s->chunk_len > ST_DECODE_TOKENS;
        if (s->resident) st_resident_pass(s->resident, s->prompt);
        stint_status status = step(s, e, done, total, &n);
        s->prompt = false;
        if (status != STINT_OK) return status;
        memmove(s->history + s->length, e->ids + done, n * sizeof(int32_t));
        s->length += n;
        if (e->logits && e->all) ST_TRY(step_logits(s, 0, n, e->logits + done * vocab));
        if (e->logits && !e->all && done + n == e->n) ST_TRY(step_logits(s, n - 1, n, e->logits));
        if (e->progress) e->progress(e->progress_context, "prompt", done + n, e->n);
    }
    return STINT_OK;
}

static stint_status eval(struct stint_session *s, const struct eval *e) {
    ST_TRY(check_ids(s, e->ids, e->n));
    size_t before = s->length;
    stint_status status = eval_batches(s, e);
    if (status != STINT_OK) s->length = before;
    if (s->resident && status != STINT_OK) st_resident_reset(s->resident);
    if (s->resident) st_resident_note(s->resident);
    return status;
}

stint_status stint_session_eval(stint_session *session, const int32_t *ids, size_t n_ids, bool all,
                                float *logits) {
    if (!session || (!ids && n_ids)) return st_fail(STINT_E_ARG, "session and ids may not be NULL");
    struct eval e = {.ids = ids, .n = n_ids, .all = all, .logits = logits};
    stint_status status = eval(session, &e);
    atomic_store(&session->canceled, false);
    return status;
}

// One generation on its way.
struct generator {
    struct stint_session *s;
    stint_generation options;
    stint_sampling sampling;
    struct st_detokenizer detokenizer;
    int32_t *ids;
    size_t capacity;
    stint_generation_result result;
    char text[ST_PIECE_MAX_BYTES + 8];
};

static bool report(struct generator *g, int32_t id, size_t n_bytes) {
    return !g->options.text || g->options.text(g->options.context, g->text, n_bytes, id);
}

// Takes a generated token: counts, stores and shows it. False ends the generation.
static bool accept(struct generator *g, int32_t id) {
    const struct stint_tokenizer *tokenizer = g->s->model->tokenizer;
    if (!g->options.ignore_eos && st_model_stops(g->s->model, id)) {
        g->result.stop_reason = STINT_STOP_EOS;
        return false;
    }
    if (g->ids) g->ids[g->result.generated_tokens] = id;
    g->result.generated_tokens++;
    size_t n = tokenizer ? st_detokenizer_push(&g->detokenizer, tokenizer, id, 0, g->text) : 0;
    if (!report(g, id, n)) {
        g->result.stop_reason = STINT_STOP_CALLBACK;
        return false;
    }
    g->result.stop_reason = STINT_STOP_LENGTH;
    return g->result.generated_tokens < g->capacity;
}

static stint_status decode(struct generator *g) {
    struct stint_session *s = g->s;
    for (uint64_t n = 0;; n++) {
        int32_t id = st_session_sample(s, &g->sampling, st_random_draw(g->sampling.seed, n));
        if (!accept(g, id)) return STINT_OK;
        if (s->length == s->n_context) {
            g->result.stop_reason = STINT_STOP_CONTEXT;
            return STINT_OK;
        }
        struct eval e = {.ids = &id, .n = 1, .logits = s->logits};
        st_session_use(s, st_precision_at(&s->precision, n));
        ST_TRY(eval(s, &e));
        g->result.average_bits += (s->precision_now - g->result.average_bits) / (double)(n + 1);
    }
}

static stint_status generate(struct generator *g, const int32_t *prompt, size_t n_prompt) {
    struct stint_session *s = g->s;
    struct eval e = {.ids = prompt,
                     .n = n_prompt,
                     .logits = s->logits,
                     .progress = g->options.progress,
                     .progress_context = g->options.progress_context};
    uint64_t start = st_now_ns();
    st_session_use(s, s->precision.prefill);
    size_t held = s->length;
    if (n_prompt == 0) { // the last token that is held gives the first logits once more
        e.ids = &s->history[--s->length];
        e.n = 1;
    }
    stint_status status = eval(s, &e);
    if (status != STINT_OK) s->length = held;
    if (status == STINT_OK && s->learned) st_learned_choose(s->learned, s, &s->precision);
    uint64_t prefilled = st_now_ns();
    g->result.prefill_seconds = (double)(prefilled - start) * 1e-9;
    if (status == STINT_OK) status = decode(g);
    st_session_use(s, s->precision.prefill);
    g->result.decode_seconds = (double)(st_now_ns() - prefilled) * 1e-9;
    size_t tail = st_detokenizer_finish(&g->detokenizer, g->text);
    if (tail && g->result.stop_reason != STINT_STOP_CALLBACK) report(g, -1, tail);
    if (status != STINT_E_CANCELED) return status;
    g->result.stop_reason = STINT_STOP_CANCELED;
    return STINT_OK;
}

static stint_status check_sampling(const stint_sampling *p) {
    if (!(p->temperature >= 0.0f) || !(p->top_p >= 0.0f && p->top_p <= 1.0f) ||
        !(p->min_p >= 0.0f && p->min_p < 1.0f) || !(p->repeat_penalty >= 0.0f))
        return st_fail(STINT_E_ARG,
                       "sampling: temperature %g, top_p %g, min_p %g, repeat_penalty %g: expected "
                       ">= 0, 0..1, 0..1 and >= 0",
                       (double)p->temperature, (double)p->top_p, (double)p->min_p,
                       (double)p->repeat_penalty);
    return STINT_OK;
}

stint_status stint_generate(stint_session *session, const int32_t *prompt, size_t n_prompt,
                            const stint_generation *options, int32_t *ids, size_t capacity,
                            stint_generation_result *result) {
    if (!session || (!prompt && n_prompt))
        return st_fail(STINT_E_ARG, "session and prompt may not be NULL");
    if (n_prompt == 0 && session->length == 0)
        return st_fail(STINT_E_ARG, "the prompt is empty: at least one token is needed");
    struct generator g = {.s = session, .ids = ids, .capacity = ids ? capacity : SIZE_MAX};
    if (options) memcpy(&g.options, options, st_min(options->size, sizeof g.options));
    if (g.options.sampling)
        memcpy(&g.sampling, g.options.sampling,
               st_min(g.options.sampling->size, sizeof g.sampling));
    ST_TRY(check_sampling(&g.sampling));
    if (g.options.n_tokens) g.capacity = st_min(g.capacity, g.options.n_tokens);
    g.result.prompt_tokens = n_prompt;
    // The first space belongs to the text where the text goes on.
    int32_t last = n_prompt ? prompt[n_prompt - 1] : session->history[session->length - 1];
    if (session->model->tokenizer)
        g.detokenizer.n_tokens = !st_tokenizer_is_special(session->model->tokenizer, last);
    stint_status status = g.capacity ? generate(&g, prompt, n_prompt) : STINT_OK;
    atomic_store(&session->canceled, false);
    if (status != STINT_OK) return status;
    if (result) {
        g.result.size = result->size;
        memcpy(result, &g.result, st_min(result->size, sizeof g.result));
    }
    return STINT_OK;
}

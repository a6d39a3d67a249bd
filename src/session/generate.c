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

static stint_status check_ids(const struct stint_session *s, const struct st_sequence *sequence,
                              const int32_t *ids, size_t n) {
    uint32_t vocab = s->model->config.vocab;
    if (n > s->n_context - sequence->length)
        return st_fail(STINT_E_LIMIT,
                       "context: %zu tokens do not fit after %zu of %zu; open the session with a "
                       "longer context (--ctx)",
                       n, sequence->length, s->n_context);
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
    bool all, prompt;
    uint64_t n_total; // tokens of the prompt with what came before it
    float *logits;
    stint_progress_fn *progress;
    void *progress_context;
};

// Runs the next ids: a chunk; where prompts are split as many chunks as there are, or, where each
// one's hidden states are needed, as have buffers. *n gets their number.
static stint_status step(struct stint_session *s, const struct eval *e, size_t done, size_t *n) {
    const int32_t *ids = e->ids + done;
    *n = e->n - done;
    if (s->split.on && s->prompt && !s->bits) {
        if (e->logits && e->all) *n = st_min(*n, s->n_lanes * s->chunk_len);
        return st_split_forward(s, ids, *n, e->n_total);
    }
    *n = st_min(*n, s->chunk_len);
    struct st_batch batch = {*n, s->now->length, e->n_total, st_session_now(s), NULL};
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
    struct st_sequence *now = s->now;
    if (e->prompt) {
        s->timeline.n = 0;
        s->begun = now->length;
    }
    for (size_t done = 0, n; done < e->n; done += n) {
        s->prompt = e->prompt && s->chunk_len > ST_DECODE_TOKENS;
        if (s->resident) st_resident_pass(s->resident, s->prompt);
        stint_status status = step(s, e, done, &n);
        if (s->prompt && status == STINT_OK && now->prompted == now->length) now->prompted += n;
        s->prompt = false;
        if (status != STINT_OK) return status;
        memmove(now->history + now->length, e->ids + done, n * sizeof(int32_t));
        now->length += n;
        if (e->logits && e->all) ST_TRY(step_logits(s, 0, n, e->logits + done * vocab));
        if (e->logits && !e->all && done + n == e->n) ST_TRY(step_logits(s, n - 1, n, e->logits));
        if (e->progress) e->progress(e->progress_context, "prompt", done + n, e->n);
    }
    return STINT_OK;
}

// What a bound of memory needs after each step.
static void settle(struct stint_session *s, stint_status status) {
    if (s->resident && status != STINT_OK) st_resident_reset(s->resident);
    if (s->resident) st_resident_note(s->resident);
}

static stint_status eval(struct stint_session *s, const struct eval *e) {
    ST_TRY(check_ids(s, s->now, e->ids, e->n));
    size_t before = s->now->length;
    stint_status status = eval_batches(s, e);
    if (status != STINT_OK) st_sequence_truncate(s->now, before);
    settle(s, status);
    return status;
}

// A short text is no prompt: it is what follows one.
static struct eval eval_of(const struct stint_session *s, const int32_t *ids, size_t n) {
    return (struct eval){
        .ids = ids, .n = n, .prompt = n > ST_DECODE_TOKENS, .n_total = s->now->length + n};
}

stint_status stint_session_eval(stint_session *session, const int32_t *ids, size_t n_ids, bool all,
                                float *logits) {
    if (!session || (!ids && n_ids)) return st_fail(STINT_E_ARG, "session and ids may not be NULL");
    struct eval e = eval_of(session, ids, n_ids);
    e.all = all;
    e.logits = logits;
    stint_status status = eval(session, &e);
    atomic_store(&session->canceled, false);
    return status;
}

stint_status st_session_prompt(struct stint_session *s, const int32_t *ids, size_t n,
                               uint64_t n_total, float *logits) {
    struct eval e = {.ids = ids, .n = n, .prompt = true, .n_total = n_total, .logits = logits};
    stint_status status = eval(s, &e);
    atomic_store(&s->canceled, false);
    return status;
}

// At most ST_DECODE_TOKENS of them.
static stint_status step_batch(struct stint_session *s, const uint32_t *sequences,
                               const int32_t *ids, size_t n, float *logits) {
    struct st_place places[ST_DECODE_TOKENS];
    struct st_batch batch = {.n = n, .places = places};
    struct st_run run = st_session_run(s, &batch);
    for (size_t i = 0; i < n; i++)
        places[i] = (struct st_place){sequences[i], s->sequences[sequences[i]].length};
    if (s->resident) st_resident_pass(s->resident, false);
    stint_status status = st_session_forward(&run, ids);
    if (status == STINT_OK && logits) status = st_session_logits(&run, 0, n, logits);
    settle(s, status);
    return status;
}

static stint_status check_step(const struct stint_session *s, const uint32_t *sequences,
                               const int32_t *ids, size_t n) {
    uint64_t seen = 0;
    for (size_t i = 0; i < n; i++) {
        if (sequences[i] >= s->n_sequences || seen >> sequences[i] & 1)
            return st_fail(STINT_E_ARG, "sequence %u: the session has %u, and each may occur once",
                           sequences[i], s->n_sequences);
        seen |= (uint64_t)1 << sequences[i];
        ST_TRY(check_ids(s, &s->sequences[sequences[i]], &ids[i], 1));
    }
    return STINT_OK;
}

stint_status stint_session_step(stint_session *s, const uint32_t *sequences, const int32_t *ids,
                                size_t n, float *logits) {
    if (!s || ((!sequences || !ids) && n))
        return st_fail(STINT_E_ARG, "session, sequences and ids may not be NULL");
    ST_TRY(check_step(s, sequences, ids, n));
    size_t vocab = s->model->config.vocab, most = st_min(ST_DECODE_TOKENS, s->chunk_len);
    stint_status status = STINT_OK;
    for (size_t done = 0, m; done < n && status == STINT_OK; done += m) {
        m = st_min(most, n - done);
        status =
            step_batch(s, sequences + done, ids + done, m, logits ? logits + done * vocab : NULL);
    }
    for (size_t i = 0; i < n && status == STINT_OK; i++) {
        struct st_sequence *sequence = &s->sequences[sequences[i]];
        sequence->history[sequence->length++] = ids[i];
    }
    atomic_store(&s->canceled, false);
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

static int32_t sample(struct generator *g, uint64_t n_generated) {
    struct stint_session *s = g->s;
    struct st_sampler sampler = {.elementwise = s->kernels.elementwise,
                                 .candidates = s->candidates,
                                 .vocab = s->model->config.vocab,
                                 .ids = s->now->history,
                                 .n_ids = s->now->length,
                                 .n_generated = n_generated};
    double draw = st_random_draw(g->sampling.seed, n_generated);
    return st_sample(&sampler, &g->sampling, draw, s->logits);
}

static stint_status decode(struct generator *g) {
    struct stint_session *s = g->s;
    for (uint64_t n = 0;; n++) {
        int32_t id = sample(g, n);
        if (!accept(g, id)) return STINT_OK;
        if (s->now->length == s->n_context) {
            g->result.stop_reason = STINT_STOP_CONTEXT;
            return STINT_OK;
        }
        struct eval e = eval_of(s, &id, 1);
        e.logits = s->logits;
        st_session_use(s, st_precision_at(&s->precision, n));
        ST_TRY(eval(s, &e));
        g->result.average_bits += (s->precision_now - g->result.average_bits) / (double)(n + 1);
    }
}

static stint_status generate(struct generator *g, const int32_t *prompt, size_t n_prompt) {
    struct stint_session *s = g->s;
    struct st_sequence before = *s->now, *now = s->now;
    if (n_prompt == 0) { // the last token that is held gives the first logits once more
        st_sequence_truncate(now, now->length - 1);
        prompt = &now->history[now->length];
        n_prompt = 1;
    }
    struct eval e = eval_of(s, prompt, n_prompt);
    e.logits = s->logits;
    e.progress = g->options.progress;
    e.progress_context = g->options.progress_context;
    uint64_t start = st_now_ns();
    st_session_use(s, s->precision.prefill);
    stint_status status = eval(s, &e);
    if (status != STINT_OK) *now = before;
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

stint_status stint_generate(stint_session *session, const int32_t *prompt, size_t n_prompt,
                            const stint_generation *options, int32_t *ids, size_t capacity,
                            stint_generation_result *result) {
    if (!session || (!prompt && n_prompt))
        return st_fail(STINT_E_ARG, "session and prompt may not be NULL");
    if (n_prompt == 0 && session->now->length == 0)
        return st_fail(STINT_E_ARG, "the prompt is empty: at least one token is needed");
    struct generator g = {.s = session, .ids = ids, .capacity = ids ? capacity : SIZE_MAX};
    if (options) memcpy(&g.options, options, st_min(options->size, sizeof g.options));
    if (g.options.sampling)
        memcpy(&g.sampling, g.options.sampling,
               st_min(g.options.sampling->size, sizeof g.sampling));
    ST_TRY(st_sampling_check(&g.sampling));
    if (g.options.n_tokens) g.capacity = st_min(g.capacity, g.options.n_tokens);
    g.result.prompt_tokens = n_prompt;
    // The first space belongs to the text where the text goes on.
    const struct st_sequence *now = session->now;
    int32_t last = n_prompt ? prompt[n_prompt - 1] : now->history[now->length - 1];
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

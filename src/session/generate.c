// SPDX-License-Identifier: Apache-2.0
// Generation of text.
#include "session/session.h"

#include "base/clock.h"
#include "base/size.h"
#include "session/precision/precision.h"
#include "tokenizer/tokenizer.h"

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

// One generation on its way.
struct generator {
    struct stint_session *s;
    struct st_sequence *held; // the one that goes on
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
    const struct st_sequence *held = g->held;
    struct st_sampler sampler = {.elementwise = s->kernels.elementwise,
                                 .candidates = s->candidates,
                                 .vocab = s->model->config.vocab,
                                 .ids = held->history,
                                 .n_ids = held->length,
                                 .n_generated = n_generated};
    double draw = st_random_draw(g->sampling.seed, n_generated);
    return st_sample(&sampler, &g->sampling, draw, s->logits);
}

static stint_status decode(struct generator *g) {
    struct stint_session *s = g->s;
    for (uint64_t n = 0;; n++) {
        int32_t id = sample(g, n);
        if (!accept(g, id)) return STINT_OK;
        if (g->held->length == s->n_context) {
            g->result.stop_reason = STINT_STOP_CONTEXT;
            return STINT_OK;
        }
        struct st_eval_request e = st_eval_request_of(s, g->options.sequence, &id, 1);
        e.logits = s->logits;
        e.precision = st_precision_at(&s->precision, n);
        ST_TRY(st_session_eval(s, &e));
        g->result.average_bits += (s->newest_bits - g->result.average_bits) / (double)(n + 1);
    }
}

static stint_status generate(struct generator *g, const int32_t *prompt, size_t n_prompt) {
    struct stint_session *s = g->s;
    struct st_sequence before = *g->held, *now = g->held;
    if (n_prompt == 0) { // the last token that is held gives the first logits once more
        st_sequence_truncate(now, now->length - 1);
        prompt = &now->history[now->length];
        n_prompt = 1;
    }
    struct st_eval_request e = st_eval_request_of(s, g->options.sequence, prompt, n_prompt);
    e.logits = s->logits;
    e.progress = g->options.progress;
    e.progress_context = g->options.progress_context;
    uint64_t start = st_now_ns();
    stint_status status = st_session_eval(s, &e);
    if (status != STINT_OK) *now = before;
    if (status == STINT_OK && s->learned)
        st_learned_choose(s->learned, s, g->options.sequence, &s->precision);
    uint64_t prefilled = st_now_ns();
    g->result.prefill_seconds = (double)(prefilled - start) * 1e-9;
    if (status == STINT_OK) status = decode(g);
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
    struct generator g = {.s = session, .ids = ids, .capacity = ids ? capacity : SIZE_MAX};
    if (options) memcpy(&g.options, options, st_min(options->size, sizeof g.options));
    ST_TRY(st_session_check(session, g.options.sequence));
    g.held = &session->sequences[g.options.sequence];
    if (n_prompt == 0 && g.held->length == 0)
        return st_fail(STINT_E_ARG, "the prompt is empty: at least one token is needed");
    if (g.options.sampling)
        memcpy(&g.sampling, g.options.sampling,
               st_min(g.options.sampling->size, sizeof g.sampling));
    ST_TRY(st_sampling_check(&g.sampling));
    if (g.options.n_tokens) g.capacity = st_min(g.capacity, g.options.n_tokens);
    g.result.prompt_tokens = n_prompt;
    // The first space belongs to the text where the text goes on.
    int32_t last = n_prompt ? prompt[n_prompt - 1] : g.held->history[g.held->length - 1];
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

// SPDX-License-Identifier: Apache-2.0
#include "generate/generator.h"

#include "base/log_sum.h"
#include "base/random.h"
#include "base/size.h"
#include "generate/parameters.h"
#include "generate/stops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void st_generator_scratch_close(struct st_generator_scratch *scratch) {
    st_guide_close(&scratch->guide);
    free(scratch->raw);
    scratch->raw = NULL;
}

// ---- Opening

static stint_status copy_stops(struct st_generator *g, const char *const *stops, size_t n) {
    if (n > STINT_MAX_STOPS)
        return st_fail(STINT_E_ARG, "%zu stop texts: at most %d", n, STINT_MAX_STOPS);
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes = strlen(stops[i]);
        if (n_bytes == 0 || n_bytes > STINT_MAX_STOP_BYTES)
            return st_fail(STINT_E_ARG, "a stop text has %zu bytes: expected 1 to %d", n_bytes,
                           STINT_MAX_STOP_BYTES);
        g->stops[i] = strdup(stops[i]);
        if (!g->stops[i]) return st_fail(STINT_E_NOMEM, "no memory for a stop text");
    }
    return STINT_OK;
}

static stint_status copy_biases(struct st_generator *g, const stint_logit_bias *biases, size_t n) {
    uint32_t vocab = g->options.model->config.vocab;
    if (n == 0) return STINT_OK;
    if (!biases) return st_fail(STINT_E_ARG, "biases may not be NULL");
    size_t n_banned = 0;
    for (size_t i = 0; i < n; i++) {
        if (biases[i].id < 0 || (uint32_t)biases[i].id >= vocab || !(biases[i].value < INFINITY))
            return st_fail(STINT_E_ARG,
                           "bias %zu: %g for token %d; expected a number below infinity for a "
                           "token of the vocabulary's %u",
                           i, (double)biases[i].value, biases[i].id, vocab);
        n_banned += biases[i].value == -INFINITY;
    }
    if (n_banned >= vocab) return st_fail(STINT_E_ARG, "biases ban all of %u tokens", vocab);
    stint_logit_bias *copy = calloc(n, sizeof *copy);
    if (!copy) return st_fail(STINT_E_NOMEM, "no memory for %zu biases", n);
    memcpy(copy, biases, n * sizeof *copy);
    g->sampling.biases = copy;
    g->sampling.n_biases = n;
    return STINT_OK;
}

static stint_status copy(struct st_generator *g, const struct st_generator_options *options) {
    stint_sampling *own = &g->sampling;
    if (options->sampling)
        memcpy(own, options->sampling, st_min(options->sampling->size, sizeof *own));
    const stint_logit_bias *biases = own->biases;
    size_t n_biases = own->n_biases;
    own->biases = NULL;
    own->n_biases = 0;
    ST_TRY(st_sampling_check(own));
    ST_TRY(copy_biases(g, biases, n_biases));
    return copy_stops(g, options->stops, options->n_stops);
}

stint_status st_generator_open(struct st_generator *g, const struct st_generator_options *options) {
    memset(g, 0, offsetof(struct st_generator, text));
    g->n_text = g->n_told = g->n_certain = 0;
    g->ended = false;
    g->options = *options;
    g->options.n_top = st_min(options->n_top, STINT_MAX_TOP);
    g->reasoning.phase = options->reasoning;
    const struct st_chat *chat = options->model->chat;
    const char *template = chat ? st_chat_template_text(chat) : NULL;
    g->speaks_harmony = !options->special && st_harmony_is_spoken(template);
    g->renamed = st_reasoning_renamed(template);
    stint_status status = copy(g, options);
    if (status != STINT_OK) st_generator_close(g);
    g->options.sampling = NULL;
    g->options.stops = NULL;
    return status;
}

void st_generator_close(struct st_generator *g) {
    for (size_t i = 0; i < STINT_MAX_STOPS; i++) free(g->stops[i]);
    memset(g->stops, 0, sizeof g->stops);
    free((stint_logit_bias *)g->sampling.biases);
    g->sampling.biases = NULL;
    g->sampling.n_biases = 0;
    st_constraint_end(g->constraint);
    g->constraint = NULL;
}

stint_status st_generator_begin(struct st_generator *g, struct st_generator_scratch *scratch,
                                const int32_t *history, size_t n_history, size_t n_context) {
    const struct stint_model *model = g->options.model;
    // The first space belongs to the text where the text goes on.
    if (model->tokenizer)
        g->detokenizer.begun = !st_tokenizer_is_special(model->tokenizer, history[n_history - 1]);
    g->room = n_context - n_history + 1; // the last token needs no place in the cache
    if (g->options.logprobs && !scratch->raw) {
        scratch->raw = calloc(model->config.vocab, sizeof *scratch->raw);
        if (!scratch->raw) return st_fail(STINT_E_NOMEM, "no memory for log-probabilities");
    }
    if (!g->options.constraint) return STINT_OK;
    ST_TRY(st_guide_open(&scratch->guide, model));
    return st_constraint_begin(g->options.constraint, &g->constraint);
}

// ---- The next token

static void rank(struct st_token *token, uint32_t max, int32_t id, float logit) {
    uint32_t at = token->n_top;
    if (at == max && logit <= token->top[at - 1].logprob) return;
    if (at < max)
        token->n_top++;
    else
        at--;
    for (; at > 0 && token->top[at - 1].logprob < logit; at--) token->top[at] = token->top[at - 1];
    token->top[at] = (stint_alternative){id, logit};
}

// Notes the likeliest tokens; returns the logarithm that makes logits log-probabilities.
static double look(const struct st_generator *g, const float *logits, struct st_token *token) {
    uint32_t max = g->options.n_top, vocab = g->options.model->config.vocab;
    double log_sum = st_log_sum(logits, vocab);
    for (uint32_t i = 0; i < vocab && max; i++) rank(token, max, (int32_t)i, logits[i]);
    for (uint32_t i = 0; i < token->n_top; i++)
        token->top[i].logprob = (float)((double)token->top[i].logprob - log_sum);
    return log_sum;
}

void st_generator_score(const struct st_generator *g, const float *logits, struct st_token *token) {
    token->n_top = 0;
    double log_sum = look(g, logits, token);
    token->logprob = (float)((double)logits[token->id] - log_sum);
}

static bool end(struct st_generator *g, stint_stop_reason reason) {
    g->ended = true;
    g->reason = reason;
    return false;
}

static struct st_sampler sampler_of(const struct st_generator *g,
                                    const struct st_generator_scratch *scratch,
                                    const int32_t *history, size_t n_history, size_t n_generated) {
    return (struct st_sampler){.elementwise = scratch->elementwise,
                               .candidates = scratch->candidates,
                               .vocab = g->options.model->config.vocab,
                               .ids = history,
                               .n_ids = n_history,
                               .n_generated = n_generated,
                               .tokenizer = g->options.model->tokenizer};
}

static void add_biases(const struct st_generator *g, float *logits) {
    for (size_t i = 0; i < g->sampling.n_biases; i++)
        logits[g->sampling.biases[i].id] += g->sampling.biases[i].value;
}

bool st_generator_next(struct st_generator *g, struct st_generator_scratch *scratch, float *logits,
                       const int32_t *history, size_t n_history, struct st_token *token) {
    const struct stint_model *model = g->options.model;
    struct st_sampler sampler = sampler_of(g, scratch, history, n_history, g->n_generated);
    double log_sum = 0.0;
    token->n_top = 0;
    token->logprob = 0.0f;
    if (g->options.logprobs) {
        memcpy(scratch->raw, logits, sampler.vocab * sizeof *logits);
        log_sum = look(g, logits, token);
    }
    add_biases(g, logits);
    if (g->constraint &&
        !st_guide_apply(&scratch->guide, model, &g->reasoning, g->constraint, logits))
        return end(g, st_constraint_complete(g->constraint) ? STINT_STOP_EOS : STINT_STOP_LENGTH);
    double draw = st_random_draw(g->sampling.seed, g->n_generated);
    token->id = st_sample(&sampler, &g->sampling, draw, logits);
    if (g->constraint) st_guide_take(model, &g->reasoning, g->constraint, token->id);
    if (!g->options.logprobs) return true;
    token->logprob = (float)((double)scratch->raw[token->id] - log_sum);
    g->logprobs += (double)token->logprob;
    g->n_scored++;
    return true;
}

int32_t st_generator_guess(const struct st_generator *g, struct st_generator_scratch *scratch,
                           float *logits, const int32_t *history, size_t n_history, size_t ahead,
                           float *margin) {
    size_t n = g->n_generated + ahead;
    struct st_sampler sampler = sampler_of(g, scratch, history, n_history, n);
    add_biases(g, logits);
    int32_t id = st_sample(&sampler, &g->sampling, st_random_draw(g->sampling.seed, n), logits);
    float own = logits[id];
    logits[id] = -INFINITY;
    *margin = own - logits[scratch->elementwise->argmax(logits, sampler.vocab)];
    return id;
}

// ---- Text

// How much of the text is certain. Stop texts are looked for in the answer alone. What may still be
// the mark in front of reasoning waits, since otherwise it is answer.
static size_t find_certain(const struct st_generator *g, bool *found) {
    size_t n_all = g->n_certain + g->n_text;
    size_t before = st_reasoning_before_answer(&g->reasoning, n_all);
    size_t skip = before > g->n_certain ? before - g->n_certain : 0;
    *found = false;
    if (g->reasoning.phase == ST_REASONING_BEFORE) return 0;
    return skip + st_stops_certain((const char *const *)g->stops, g->options.n_stops,
                                   g->text + skip, g->n_text - skip, found);
}

static void forget_told(struct st_generator *g) {
    g->n_text -= g->n_told;
    if (g->n_told > 0) memmove(g->text, g->text + g->n_told, g->n_text);
    g->n_told = 0;
}

static size_t make_text(struct st_generator *g, int32_t id, char *made) {
    const struct stint_tokenizer *tokenizer = g->options.model->tokenizer;
    char piece[ST_PIECE_MAX_BYTES + 8];
    uint32_t flags = g->options.special || g->speaks_harmony ? STINT_DETOKENIZE_SPECIAL : 0;
    char *text = g->speaks_harmony ? piece : made;
    size_t n = st_detokenizer_push(&g->detokenizer, tokenizer, id, flags, text);
    if (g->speaks_harmony) return st_harmony_push(&g->harmony, piece, n, made);
    const struct st_renamed_mark *renamed = st_reasoning_rename(g->renamed, made, n);
    size_t title = renamed ? 0 : st_reasoning_title(&g->title, made, n);
    if (title) memmove(made, made + title, n - title);
    if (!renamed) return n - title;
    g->title = renamed->title;
    memcpy(made, renamed->as, strlen(renamed->as));
    return strlen(renamed->as);
}

bool st_generator_accept(struct st_generator *g, const struct st_token *token,
                         struct st_generated *generated) {
    const struct stint_model *model = g->options.model;
    *generated = (struct st_generated){.made = "", .text = ""};
    forget_told(g);
    bool ignores = g->options.ignore_eos && !g->constraint;
    if (!ignores && st_model_stops(model, token->id)) return end(g, STINT_STOP_EOS);
    char *made = g->text + g->n_text;
    size_t n = model->tokenizer ? make_text(g, token->id, made) : 0;
    st_reasoning_push(&g->reasoning, made, n);
    g->n_text += n;
    g->n_generated++;
    bool found;
    g->n_told = find_certain(g, &found);
    g->n_certain += g->n_told;
    *generated = (struct st_generated){
        .counts = true, .made = made, .n_made = n, .text = g->text, .n_bytes = g->n_told};
    if (found) {
        g->n_text = g->n_told; // without the stop text and what follows it
        g->detokenizer.n_pending = 0;
        return end(g, STINT_STOP_TEXT);
    }
    if (g->options.max_tokens && g->n_generated >= g->options.max_tokens)
        return end(g, STINT_STOP_LENGTH);
    return g->n_generated < g->room || end(g, STINT_STOP_CONTEXT);
}

size_t st_generator_finish(struct st_generator *g, const char **text) {
    forget_told(g);
    st_constraint_end(g->constraint);
    g->constraint = NULL;
    g->n_text += st_detokenizer_finish(&g->detokenizer, g->text + g->n_text);
    *text = g->text;
    return g->n_text;
}

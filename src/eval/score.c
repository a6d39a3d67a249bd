// SPDX-License-Identifier: Apache-2.0
// Texts are scored side by side, each in a sequence of the session. The common beginning of a
// sequence and the one before it, such as the context of several endings, stays there.
#include "eval/score.h"

#include "base/buffer.h"
#include "base/log_sum.h"
#include "base/size.h"
#include "session/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

stint_status st_scorer_open(const struct st_subject *subject, const stint_session_options *options,
                            size_t n_context, size_t n_texts, struct st_scorer *scorer) {
    const struct stint_model *model = subject->model;
    struct st_scorer s = {.model = model};
    stint_session_options o = {0};
    if (options) memcpy(&o, options, st_min(options->size, sizeof o));
    o.size = sizeof o;
    if (subject->baseline) s.n_prefix = st_baseline_prefix(subject->baseline);
    o.n_context = (uint32_t)(n_context + s.n_prefix);
    s.n_texts = model->checkpoint.lazy ? 1 : st_min(n_texts, ST_SCORE_TEXTS);
    o.n_sequences = (uint32_t)s.n_texts;
    if (!model->tokenizer)
        return st_fail(STINT_E_ARG, "this model has no tokenizer: texts cannot be scored");
    ST_TRY(stint_session_open(model, &o, &s.session));
    s.logits = malloc(ST_SCORE_ROWS * model->config.vocab * sizeof *s.logits);
    if (!s.logits) {
        st_scorer_close(&s);
        return st_fail(STINT_E_NOMEM, "no memory for logits");
    }
    stint_status status =
        subject->baseline ? st_baseline_attach(subject->baseline, s.session) : STINT_OK;
    if (status != STINT_OK) {
        st_scorer_close(&s);
        return status;
    }
    *scorer = s;
    return STINT_OK;
}

void st_scorer_close(struct st_scorer *scorer) {
    stint_session_close(scorer->session);
    for (size_t i = 0; i < ST_SCORE_TEXTS; i++) st_ids_free(&scorer->last[i]);
    free(scorer->logits);
    *scorer = (struct st_scorer){0};
}

double st_log_probability(const float *logits, size_t vocab, int32_t id) {
    return (double)logits[id] - st_log_sum(logits, vocab);
}

// The beginning of a text that its sequence holds already, and stays there.
static stint_status keep_same(struct st_scorer *s, uint32_t sequence,
                              const struct st_scored_text *text, size_t *same) {
    struct st_ids *last = &s->last[sequence];
    size_t held = stint_session_length(s->session, sequence);
    size_t most = st_min(st_min(text->from, last->count), held - st_min(held, s->n_prefix));
    *same = 0;
    while (*same < most && last->data[*same] == text->ids[*same]) ++*same;
    last->count = *same;
    return stint_session_truncate(s->session, sequence, s->n_prefix + *same);
}

// What parts are of.
struct scored {
    const struct st_scored_text *texts;
    size_t first[ST_SCORE_TEXTS]; // ids before the part
    size_t vocab;
};

static void give_row(void *context, size_t part, size_t i, const float *logits) {
    const struct scored *scored = context;
    const struct st_scored_text *text = &scored->texts[part];
    size_t at = scored->first[part] + i;
    text->fn(text->context, logits, scored->vocab, text->ids[at + 1], at);
}

stint_status st_score_texts(struct st_scorer *s, const struct st_scored_text *texts, size_t n) {
    struct st_text_part parts[ST_SCORE_TEXTS];
    struct scored scored = {.texts = texts, .vocab = s->model->config.vocab};
    for (size_t i = 0; i < n; i++) {
        const struct st_scored_text *t = &texts[i];
        size_t same;
        ST_TRY(keep_same(s, (uint32_t)i, t, &same));
        scored.first[i] = same;
        parts[i] =
            (struct st_text_part){(uint32_t)i, t->ids + same, t->n - 1 - same, t->from - same};
        s->n_tokens += t->n - 1 - t->from;
    }
    struct st_texts all = {parts, n, s->logits, ST_SCORE_ROWS, give_row, &scored};
    ST_TRY(st_session_eval_texts(s->session, &all));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < parts[i].n; k++) ST_TRY(st_ids_append(&s->last[i], parts[i].ids[k]));
    return STINT_OK;
}

static void add_row(void *context, const float *logits, size_t vocab, int32_t next, size_t i) {
    struct st_score *score = context;
    (void)i;
    score->log_likelihood += st_log_probability(logits, vocab, next);
    size_t best = 0;
    for (size_t v = 1; v < vocab; v++)
        if (logits[v] > logits[best]) best = v;
    score->greedy = score->greedy && (int32_t)best == next;
}

// At least one token is needed before the first scored one, and at least one is scored.
static struct st_scored_text scored_of(const struct st_scorer *s, const struct st_ids *all,
                                       size_t n_context, struct st_score *score) {
    size_t first = st_min(st_max(n_context, 1), all->count - 1);
    size_t room = stint_session_context(s->session) - s->n_prefix, skip = 0;
    if (all->count > room) skip = st_min(all->count - room, first - 1);
    *score = (struct st_score){0.0, true};
    return (struct st_scored_text){.ids = all->data + skip,
                                   .n = st_min(all->count - skip, room),
                                   .from = first - skip - 1,
                                   .fn = add_row,
                                   .context = score};
}

static stint_status encode(const struct st_scorer *s, const struct st_ending *ending,
                           struct st_ids *all, size_t *n_context) {
    enum { FLAGS = STINT_TOKENIZE_ADD_BOS | STINT_TOKENIZE_PLAIN };
    const struct stint_tokenizer *t = s->model->tokenizer;
    struct st_ids before = {0};
    char *text = NULL;
    if (asprintf(&text, "%s%s", ending->context, ending->ending) < 0)
        return st_fail(STINT_E_NOMEM, "no memory for a text");
    stint_status status = st_tokenizer_encode(t, text, strlen(text), FLAGS, all);
    if (status == STINT_OK)
        status = st_tokenizer_encode(t, ending->context, strlen(ending->context), FLAGS, &before);
    if (status == STINT_OK && all->count < 2)
        status = st_fail(STINT_E_FORMAT, "'%.40s' is too short to be scored", text);
    *n_context = before.count;
    st_ids_free(&before);
    free(text);
    return status;
}

stint_status st_score_endings(struct st_scorer *s, const struct st_ending *endings, size_t n,
                              struct st_score *scores) {
    struct st_ids all[ST_SCORE_TEXTS] = {0};
    struct st_scored_text texts[ST_SCORE_TEXTS] = {0};
    stint_status status = STINT_OK;
    for (size_t i = 0, n_context = 0; i < n && status == STINT_OK; i++) {
        status = encode(s, &endings[i], &all[i], &n_context);
        if (status == STINT_OK) texts[i] = scored_of(s, &all[i], n_context, &scores[i]);
    }
    if (status == STINT_OK) status = st_score_texts(s, texts, n);
    for (size_t i = 0; i < n; i++) st_ids_free(&all[i]);
    return status;
}

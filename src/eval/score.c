// SPDX-License-Identifier: Apache-2.0
// The common beginning of a sequence and the one before it, such as the context of several endings,
// stays in the session.
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
                            size_t n_context, struct st_scorer *scorer) {
    const struct stint_model *model = subject->model;
    struct st_scorer s = {.model = model};
    stint_session_options o = {0};
    if (options) memcpy(&o, options, st_min(options->size, sizeof o));
    o.size = sizeof o;
    if (subject->baseline) s.n_prefix = st_baseline_prefix(subject->baseline);
    o.n_context = (uint32_t)(n_context + s.n_prefix);
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
    st_ids_free(&scorer->last);
    free(scorer->logits);
    *scorer = (struct st_scorer){0};
}

double st_log_probability(const float *logits, size_t vocab, int32_t id) {
    return (double)logits[id] - st_log_sum(logits, vocab);
}

// Appends ids, [n, vocab] logits where they are wanted. At the precision of prompts, as steps would
// be computed: what is measured stands for them.
static stint_status append(struct st_scorer *s, const int32_t *ids, size_t n, float *logits) {
    struct st_eval_request e = st_eval_request_of(s->session, 0, ids, n);
    e.all = e.as_steps = true;
    e.logits = logits;
    return st_session_eval(s->session, &e);
}

// Makes the session hold ids[0, n), reusing what it holds already.
static stint_status hold(struct st_scorer *s, const int32_t *ids, size_t n) {
    size_t same = 0;
    while (same < n && same < s->last.count && s->last.data[same] == ids[same]) same++;
    same = st_min(same, stint_session_length(s->session, 0) - s->n_prefix);
    ST_TRY(stint_session_truncate(s->session, 0, s->n_prefix + same));
    if (same < n) ST_TRY(append(s, ids + same, n - same, NULL));
    s->last.count = 0;
    for (size_t i = 0; i < n; i++) ST_TRY(st_ids_append(&s->last, ids[i]));
    return STINT_OK;
}

stint_status st_score_rows(struct st_scorer *s, const int32_t *ids, size_t n, size_t from,
                           st_row_fn *fn, void *context) {
    size_t vocab = s->model->config.vocab;
    ST_TRY(hold(s, ids, from));
    for (size_t i = from; i + 1 < n; i += ST_SCORE_ROWS) {
        size_t rows = st_min(ST_SCORE_ROWS, n - 1 - i);
        ST_TRY(append(s, ids + i, rows, s->logits));
        for (size_t r = 0; r < rows; r++) {
            ST_TRY(st_ids_append(&s->last, ids[i + r]));
            fn(context, s->logits + r * vocab, vocab, ids[i + r + 1], i + r);
        }
        s->n_tokens += rows;
    }
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

static stint_status score_ids(struct st_scorer *s, const struct st_ids *all, size_t n_context,
                              struct st_score *score) {
    // At least one token is needed before the first scored one, and at least one is scored.
    size_t first = st_min(st_max(n_context, 1), all->count - 1);
    size_t room = stint_session_context(s->session) - s->n_prefix, skip = 0;
    if (all->count > room) skip = st_min(all->count - room, first - 1);
    size_t n = st_min(all->count - skip, room);
    *score = (struct st_score){0.0, true};
    return st_score_rows(s, all->data + skip, n, first - skip - 1, add_row, score);
}

stint_status st_score_ending(struct st_scorer *s, const char *context, const char *ending,
                             struct st_score *score) {
    enum { FLAGS = STINT_TOKENIZE_ADD_BOS | STINT_TOKENIZE_PLAIN };
    struct st_ids all = {0}, before = {0};
    char *text = NULL;
    if (asprintf(&text, "%s%s", context, ending) < 0)
        return st_fail(STINT_E_NOMEM, "no memory for a text");
    const struct stint_tokenizer *t = s->model->tokenizer;
    stint_status status = st_tokenizer_encode(t, text, strlen(text), FLAGS, &all);
    if (status == STINT_OK)
        status = st_tokenizer_encode(t, context, strlen(context), FLAGS, &before);
    if (status == STINT_OK && all.count < 2)
        status = st_fail(STINT_E_FORMAT, "'%.40s' is too short to be scored", text);
    if (status == STINT_OK) status = score_ids(s, &all, before.count, score);
    st_ids_free(&all);
    st_ids_free(&before);
    free(text);
    return status;
}

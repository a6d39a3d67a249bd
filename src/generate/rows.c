// SPDX-License-Identifier: Apache-2.0
#include "generate/rows.h"

#include "base/clock.h"
#include "base/size.h"
#include "generate/self_drafts.h"

#include <string.h>

size_t st_rows_group(const struct stint_session *s, const unsigned *bits, uint64_t *waits,
                     uint32_t group[STINT_MAX_STEP_ROWS]) {
    size_t n = 0, most = st_min(STINT_MAX_STEP_ROWS, s->chunk_len);
    unsigned of = bits[__builtin_ctzll(*waits)];
    for (uint64_t left = *waits; left && n < most; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left);
        if (bits[i] == of) group[n++] = i;
    }
    for (size_t i = 0; i < n; i++) *waits &= ~((uint64_t)1 << group[i]);
    return n;
}

// What session, context, answer and precision allow.
static size_t max_drafts(const struct stint_session *s, const struct st_rows_text *text) {
    const struct st_generator *g = text->generator;
    size_t max = st_min(s->drafting.n, s->n_context - s->sequences[text->sequence].length - 1);
    if (g->options.max_tokens > 0) max = st_min(max, g->options.max_tokens - g->n_generated - 1);
    size_t n = 0, step = g->n_generated;                        // of the first draft
    if (text->precision->signal != STINT_SIGNAL_NONE) return 0; // what it will need is not known
    unsigned bits = st_precision_at(text->precision, step - 1, 0.0f);
    while (n < max && st_precision_at(text->precision, step + n, 0.0f) == bits) n++;
    return n;
}

static void propose(struct stint_session *s, const struct st_rows_text *text,
                    struct st_proposal *p) {
    struct st_sequence *held = &s->sequences[text->sequence];
    struct st_draft *draft = &s->drafting.texts[text->sequence];
    held->history[held->length] = text->newest; // where the step puts it
    st_draft_follow(draft, held->history, held->length + 1, text->generator->n_generated);
    p->max = max_drafts(s, text);
    p->n = st_draft_propose(draft, p->max, p->ids, p->chances);
}

// The proposal whose next token is the likeliest to be right; NULL if none is left.
static struct st_proposal *likeliest(struct st_proposal *proposals, size_t n) {
    struct st_proposal *best = NULL;
    for (struct st_proposal *p = proposals; p < proposals + n; p++)
        if (p->n_selected < p->n &&
            (!best || p->chances[p->n_selected] > best->chances[best->n_selected]))
            best = p;
    return best;
}

// Takes the likeliest tokens of all proposals, as many as pay.
static void select_drafts(const struct stint_session *s, const struct st_rows *rows,
                          struct st_proposal *proposals) {
    struct st_proposal *order[STINT_MAX_STEP_ROWS], *p;
    double chances[STINT_MAX_STEP_ROWS];
    size_t most = st_min(STINT_MAX_STEP_ROWS, s->chunk_len), n = 0;
    while (rows->n_texts + n < most && (p = likeliest(proposals, rows->n_texts)) != NULL) {
        chances[n] = p->chances[p->n_selected++];
        order[n++] = p;
    }
    size_t selected = st_draft_select(&s->drafting.costs, rows->bits, rows->n_texts, chances, n);
    while (n > selected) order[--n]->n_selected--;
}

// Puts the newest token of a text and its drafts behind the rows that there are.
static void lay_out(struct st_rows *rows, struct st_rows_text *text, const struct st_proposal *p) {
    text->first = rows->n;
    text->n = 1 + p->n_selected;
    text->n_taken = 0;
    rows->ids[rows->n] = text->newest;
    memcpy(rows->ids + rows->n + 1, p->ids, p->n_selected * sizeof *p->ids);
    memcpy(rows->margins + rows->n + 1, p->margins, p->n_selected * sizeof *p->margins);
    for (size_t k = 0; k < text->n; k++) rows->sequences[rows->n++] = text->sequence;
}

stint_status st_rows_draft(struct stint_session *s, struct st_rows *rows, float *logits) {
    struct st_proposal proposals[STINT_MAX_STEP_ROWS];
    rows->n = 0;
    rows->drafting = 0.0;
    for (size_t i = 0; i < rows->n_texts; i++) {
        proposals[i].n = proposals[i].n_selected = 0;
        rows->texts[i].self = false;
        if (s->drafting.n) propose(s, &rows->texts[i], &proposals[i]);
    }
    if (s->drafting.n) {
        select_drafts(s, rows, proposals);
        ST_TRY(st_self_drafts_add(s, rows, proposals, logits));
    }
    for (size_t i = 0; i < rows->n_texts; i++) lay_out(rows, &rows->texts[i], &proposals[i]);
    return STINT_OK;
}

stint_status st_rows_step(struct stint_session *s, struct st_rows *rows, float *logits) {
    uint64_t begun = st_now_ns();
    ST_TRY(st_session_step(s, rows->bits, rows->sequences, rows->ids, rows->n, logits));
    rows->seconds = (double)(st_now_ns() - begun) * 1e-9;
    for (size_t i = 0; i < rows->n_texts; i++) {
        struct st_sequence *held = &s->sequences[rows->texts[i].sequence];
        st_sequence_truncate(held, held->length - (rows->texts[i].n - 1));
    }
    return STINT_OK;
}

bool st_rows_take(struct stint_session *s, struct st_rows *rows, size_t text, int32_t id) {
    struct st_rows_text *t = &rows->texts[text];
    if (t->n_taken + 1 == t->n || rows->ids[t->first + t->n_taken + 1] != id) return false;
    t->n_taken++;
    s->sequences[t->sequence].length++; // its keys and values are there
    return true;
}

void st_rows_end(struct stint_session *s, const struct st_rows *rows) {
    size_t n_tokens = rows->n_texts;
    for (size_t i = 0; i < rows->n_texts; i++) n_tokens += rows->texts[i].n_taken;
    if (!s->drafting.n) return;
    const struct st_draft_step step = {.bits = rows->bits,
                                       .n_texts = rows->n_texts,
                                       .n_rows = rows->n,
                                       .n_tokens = n_tokens,
                                       .seconds = rows->seconds,
                                       .drafting = rows->drafting};
    st_draft_measure(&s->drafting.costs, &step);
    st_self_drafts_learn(s, rows);
}

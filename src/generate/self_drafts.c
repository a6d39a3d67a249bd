// SPDX-License-Identifier: Apache-2.0
#include "generate/self_drafts.h"

#include "base/clock.h"
#include "session/weights/bounded.h"

#include <math.h>

static unsigned kept_below(const struct stint_session *s, unsigned most, unsigned bits) {
    unsigned drafts = st_precision_below(s->model, most, bits);
    bool kept = !s->bounded || s->bounded->pins.precisions >> drafts & 1;
    return s->drafting.n && drafts && kept ? drafts : 0;
}

unsigned st_self_drafts_bits(const struct stint_session *s, unsigned bits) {
    return kept_below(s, s->drafting.bits, bits);
}

// What steps of this precision may be drafted with, the second by fewer bits than the first.
static void set_ways(struct stint_session *s, unsigned target, unsigned bits) {
    unsigned fewer = s->ahead.on ? 0 : kept_below(s, s->drafting.bits, bits);
    st_self_draft_at(&s->drafting.selfs[0], bits, target);
    st_self_draft_at(&s->drafting.selfs[1], fewer, target);
}

// The texts that draft, in a step of their own.
struct chain {
    struct st_rows_text *texts[STINT_MAX_STEP_ROWS];
    struct st_proposal *proposals[STINT_MAX_STEP_ROWS];
    size_t n;
    size_t room;                 // rows that the verifying step still has
    uint32_t way;                // of the session's drafts
    struct st_self_draft *draft; // of the session, at the precision of these steps
    struct st_self_plan plan;
    bool in_part; // its steps leave out a part of the head; a bound decides that at opening
    float *logits;
};

static void select_way(struct stint_session *s, const struct st_self_case *about, struct chain *c) {
    struct st_self_plan plans[ST_SELF_WAYS];
    for (size_t i = 0; i < ST_SELF_WAYS; i++)
        plans[i] = st_self_draft_plan(&s->drafting.selfs[i], &s->drafting.costs, about);
    c->way = (uint32_t)st_self_draft_select(s->drafting.selfs, plans, s->drafting.turn);
    c->draft = &s->drafting.selfs[c->way];
    c->in_part =
        !s->bounded &&
        st_draft_head_is_enough(&s->drafting.head, st_draft_head_saves(s->model, c->draft->bits));
    c->plan = plans[c->way];
    if (s->drafting.costs.always) c->plan.max = about->max;
}

// Plans for the texts that have no proposal, and those whose first token is less likely to be right
// than `weaker`.
static void plan(struct stint_session *s, struct st_rows *rows, struct st_proposal *proposals,
                 double weaker, struct chain *c) {
    struct st_self_case about = {
        .n_all = rows->n_texts, .n_rows = rows->n_texts, .tokens = (double)rows->n_texts};
    for (size_t i = 0; i < rows->n_texts; i++) {
        struct st_proposal *p = &proposals[i];
        bool stays = p->n_selected && p->chances[0] >= weaker;
        about.n_rows += stays ? p->n_selected : 0;
        for (size_t k = 0; k < p->n_selected && stays; k++) about.tokens += p->chances[k];
        if (stays || p->max == 0) continue;
        if (s->ahead.on && !st_ahead_is_ready(s, rows->texts[i].sequence)) continue;
        c->texts[c->n] = &rows->texts[i];
        c->proposals[c->n++] = p;
        about.max = st_max(about.max, p->max);
    }
    about.n_texts = c->n;
    c->room = st_min(STINT_MAX_STEP_ROWS, s->chunk_len) - about.n_rows;
    if (c->room < c->n) c->n = 0;
    about.max = c->n ? st_min(about.max, c->room / c->n) : 0;
    select_way(s, &about, c);
}

// Fewer bits may take the place of what followed earlier words.
static void begin(struct stint_session *s, struct st_rows *rows, struct st_proposal *proposals,
                  struct chain *c) {
    struct chain instead = *c;
    double hope = 0.0;
    for (size_t i = 0; i < ST_SELF_WAYS; i++)
        hope = fmax(hope, st_self_draft_hope(&s->drafting.selfs[i]));
    plan(s, rows, proposals, 0.0, c);
    plan(s, rows, proposals, hope, &instead);
    if (instead.n > c->n && instead.plan.rate > fmax(c->plan.rate, c->plan.without)) *c = instead;
    if (c->n == 0) return;
    s->drafting.way = c->way;
    if (c->plan.rate > 0.0 || s->drafting.costs.always) {
        for (size_t i = 0; i < c->n; i++) c->proposals[i]->n_selected = 0;
        s->drafting.turn++;
        return;
    }
    for (size_t i = 0; i < ST_SELF_WAYS; i++) st_self_draft_idle(&s->drafting.selfs[i]);
    c->n = 0;
}

// Takes the token that a step with fewer bits gives, and says whether another should follow.
static bool take(struct stint_session *s, const struct st_rows *rows, const struct chain *c,
                 size_t i) {
    struct st_rows_text *text = c->texts[i];
    struct st_proposal *p = c->proposals[i];
    const struct st_sequence *held = &s->sequences[text->sequence];
    const struct st_generator *g = text->generator;
    size_t n = p->n_selected++;
    p->ids[n] = st_generator_guess(g, rows->scratch, c->logits + i * s->model->config.vocab,
                                   held->history, held->length, n, &p->margins[n]);
    p->chances[n] = (n ? p->chances[n - 1] : 1.0) * st_self_draft_chance(c->draft, p->margins[n]);
    text->self = true;
    return p->n_selected < st_min(p->max, c->plan.max) && !st_model_stops(s->model, p->ids[n]) &&
           st_self_draft_goes_on(c->draft, &s->drafting.costs, c->plan.rate, p->chances[n], c->n);
}

// One step; the texts that go on stay.
static stint_status step(struct stint_session *s, struct st_rows *rows, struct chain *c) {
    uint32_t sequences[STINT_MAX_STEP_ROWS];
    int32_t ids[STINT_MAX_STEP_ROWS];
    bool first = c->proposals[0]->n_selected == 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct st_proposal *p = c->proposals[i];
        sequences[i] = c->texts[i]->sequence;
        ids[i] = p->n_selected ? p->ids[p->n_selected - 1] : c->texts[i]->newest;
    }
    uint64_t begun = st_now_ns();
    if (s->ahead.on)
        ST_TRY(st_ahead_step(s, sequences, ids, c->n, first, c->logits));
    else
        ST_TRY(
            st_session_draft_step(s, c->draft->bits, c->in_part, sequences, ids, c->n, c->logits));
    double seconds = (double)(st_now_ns() - begun) * 1e-9;
    rows->drafting += st_self_draft_measure(c->draft, &s->drafting.costs, c->n, seconds);
    c->room -= c->n;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!take(s, rows, c, i)) continue;
        c->texts[n] = c->texts[i];
        c->proposals[n++] = c->proposals[i];
    }
    c->n = c->room >= n ? n : 0;
    return STINT_OK;
}

stint_status st_self_drafts_add(struct stint_session *s, struct st_rows *rows,
                                struct st_proposal *proposals, float *logits) {
    struct chain chain = {.logits = logits};
    unsigned bits = s->ahead.on ? ST_SELF_AHEAD : st_self_drafts_bits(s, rows->bits);
    size_t lengths[STINT_MAX_STEP_ROWS];
    stint_status status = STINT_OK;
    if (!bits) return STINT_OK;
    set_ways(s, rows->bits, bits);
    begin(s, rows, proposals, &chain);
    for (size_t i = 0; i < rows->n_texts; i++)
        lengths[i] = s->sequences[rows->texts[i].sequence].length;
    while (chain.n > 0 && status == STINT_OK) status = step(s, rows, &chain);
    for (size_t i = 0; i < rows->n_texts; i++)
        st_sequence_truncate(&s->sequences[rows->texts[i].sequence], lengths[i]);
    return status;
}

void st_self_drafts_learn(struct stint_session *s, const struct st_rows *rows) {
    size_t head_rows = st_draft_head_rows(&s->model->config);
    for (size_t i = 0; i < rows->n_texts; i++) {
        const struct st_rows_text *t = &rows->texts[i];
        for (size_t k = 0; k <= t->n_taken; k++)
            st_draft_head_observe(&s->drafting.head, (size_t)rows->ids[t->first + k] >= head_rows);
        size_t seen = t->self ? st_min(t->n - 1, t->n_taken + 1) : 0; // what follows is unknown
        for (size_t k = 0; k < seen; k++)
            st_self_draft_observe(&s->drafting.selfs[s->drafting.way],
                                  rows->margins[t->first + 1 + k], k < t->n_taken);
    }
}

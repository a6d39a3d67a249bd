// SPDX-License-Identifier: Apache-2.0
// Self-drafts: fewer bits of the same weights propose the next tokens, one step after another, and
// a step at full precision verifies them together (speculative decoding, Leviathan et al. 2023; the
// model's own weights as the draft model: Zhang et al. 2024, "Draft & Verify"). How long it drafts
// follows from what is measured: how often such tokens are right, by the margin with which fewer
// bits picked them, and what their steps cost.
#ifndef ST_DRAFT_SELF_H
#define ST_DRAFT_SELF_H

#include "draft/draft.h"

enum {
    ST_SELF_CLASSES = 6, // of margins
    ST_SELF_AHEAD = 64,  // in place of bits: the checkpoint's own layer drafts (session/ahead.h)
    ST_SELF_WAYS = 2,    // precisions that are compared: the highest allowed, the next fewer bits
};

// How many tokens of the session's texts are outside of a part of the head, of late.
// Zero-initialise.
struct st_draft_head {
    float n, outside;
};
void st_draft_head_observe(struct st_draft_head *head, bool outside);
// Whether drafts should compute that part alone, which saves a share of their time: tokens outside
// are never drafted.
bool st_draft_head_is_enough(const struct st_draft_head *head, double saved);

// Of one session. Zero-initialise.
struct st_self_draft {
    unsigned bits, target; // of the steps that draft and of those that verify
    float tried[ST_SELF_CLASSES], right[ST_SELF_CLASSES];
    double seconds[STINT_MAX_STEP_ROWS + 1]; // of a step that drafts, by its rows; 0: unknown
    unsigned n_trusted; // how many such steps were measured, as far as they are to be believed
    unsigned n_idle;    // steps since it last drafted
};

// What is to be drafted for.
struct st_self_case {
    size_t n_all;   // texts of the step
    size_t n_texts; // of these, that would draft
    size_t n_rows;  // of the step without their drafts
    double tokens;  // that such a step would give
    size_t max;     // most drafts of a text
};

// Says the precisions. Of others nothing is known.
void st_self_draft_at(struct st_self_draft *draft, unsigned bits, unsigned target);
// The probability that a token is right which was picked with this margin: its logit minus the
// largest other one.
double st_self_draft_chance(const struct st_self_draft *draft, float margin);
// The same of one that is not picked yet; 0 where too little is known.
double st_self_draft_hope(const struct st_self_draft *draft);
void st_self_draft_observe(struct st_self_draft *draft, float margin, bool right);
// A step that drafted. Returns what it is to count for: its time without disturbances, to which the
// first steps belong, which read weights into the caches or from a file.
double st_self_draft_measure(struct st_self_draft *draft, const struct st_draft_costs *costs,
                             size_t n_rows, double seconds);

struct st_self_plan {
    double rate;    // tokens a second that are expected; 0: drafting would not pay
    double without; // and if nothing more is drafted; 0: unknown
    size_t max;     // most drafts of a text: more might lose what drafts may not (st_draft_select)
};
struct st_self_plan st_self_draft_plan(const struct st_self_draft *draft,
                                       const struct st_draft_costs *costs,
                                       const struct st_self_case *about);
// Which of two ways drafts next: the one that expects more tokens a second; now and then the other
// one, often while little is known of the second. Its `bits` are 0 where there is none. turn: steps
// that drafted before.
size_t st_self_draft_select(const struct st_self_draft drafts[ST_SELF_WAYS],
                            const struct st_self_plan plans[ST_SELF_WAYS], uint32_t turn);
// Whether a text should draft another token beside n_texts - 1 other ones, where `rate` is expected
// and all tokens that it has drafted are right with probability `chance`; up to the plan's `max`.
bool st_self_draft_goes_on(const struct st_self_draft *draft, const struct st_draft_costs *costs,
                           double rate, double chance, size_t n_texts);
// A step did not draft. In the long run this is tried again: texts change.
void st_self_draft_idle(struct st_self_draft *draft);

#endif

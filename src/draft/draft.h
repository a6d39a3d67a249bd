// SPDX-License-Identifier: Apache-2.0
// Drafts: what follows the longest earlier occurrence of the text's end is proposed as its
// continuation (prompt lookup, Saxena 2023; here by a suffix automaton). A step computes the
// proposed tokens beside the newest one, and those are taken that the model picks itself. Whether
// that pays is measured: how often such proposals are right, with or without being computed, and
// what steps of so many rows cost.
#ifndef ST_DRAFT_DRAFT_H
#define ST_DRAFT_DRAFT_H

#include "draft/suffix.h"
#include "stint.h"

enum {
    ST_DRAFT_CLASSES = 6, // of lengths of a match
};

// Of one sequence.
struct st_draft {
    struct st_suffix suffix;
    float tried[ST_DRAFT_CLASSES], right[ST_DRAFT_CLASSES]; // proposals of the next token
};

void st_draft_lay_out(struct st_draft *draft, size_t n_context, struct st_arena *arena);
// Takes up the text [n], of which the last n_generated tokens were generated: those say how often
// proposals are right. n is at most n_context.
void st_draft_follow(struct st_draft *draft, const int32_t *text, size_t n, size_t n_generated);
// Proposes at most `max` tokens that follow the text; chances[i] is the probability that all of
// ids[0, i] are right. Returns their number.
size_t st_draft_propose(const struct st_draft *draft, size_t max, int32_t *ids, double *chances);

// Of one session: what its steps cost. Of several rows: a straight line.
struct st_draft_costs {
    unsigned bits; // of the weights that they are about
    double
        plain[STINT_MAX_STEP_ROWS + 1]; // seconds of a step without drafts by its rows; 0: unknown
    double sums[5]; // over steps of several rows: 1, rows, rows^2, seconds, rows * seconds
    size_t longest; // most rows of a step
    bool always;    // drafts are selected whatever they cost
    double total;   // seconds of all steps
    double gain;    // seconds that drafts saved; negative: lost
    unsigned n_plain, n_drafted; // steps without drafts; with drafts since the last one
};

// What a step took.
struct st_draft_step {
    unsigned bits;
    size_t n_texts, n_rows; // rows that were not drafted; all
    size_t n_tokens;        // that it gave
    double seconds;
    double drafting; // seconds of steps before it that drafted (draft/self.h)
};
void st_draft_measure(struct st_draft_costs *costs, const struct st_draft_step *step);
// Takes a measured time into an average, 0 if none was. A disturbance makes a step slower, never
// faster.
double st_draft_average(double old, double seconds);
// A measured time without what a disturbance may have added, where a step was expected to take
// `expected` seconds, 0 if nothing is known. Else drafts would be blamed for all disturbances that
// come while they are computed, and single tokens for none.
double st_draft_undisturbed(double seconds, double expected);
// Whether a step should go without drafts, to see what that costs: often while few did, as the
// first ones read weights that are not in the caches yet, or not in memory, and seldom later.
bool st_draft_is_due(const struct st_draft_costs *costs);
// The estimated seconds of a step of n_rows > 0. 0: nothing was measured.
double st_draft_cost(const struct st_draft_costs *costs, size_t n_rows);
// The seconds that drafts of one step of n_texts other rows may lose.
double st_draft_allowed(const struct st_draft_costs *costs, size_t n_texts);
// How many drafted rows, likeliest first with falling chances [n], a step of n_texts other rows
// should have: as many as give most tokens per second, while what all drafts may have lost stays
// below 0.3 % of all steps' time and three quarters of a step.
size_t st_draft_select(const struct st_draft_costs *costs, unsigned bits, size_t n_texts,
                       const double *chances, size_t n);

#endif

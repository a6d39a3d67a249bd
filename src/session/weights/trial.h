// SPDX-License-Identifier: Apache-2.0
// Whether something pays that steps can do or leave out, with the same results: it is tried. Of
// each period the first steps do it or not, in turn, the others do what was faster.
#ifndef ST_SESSION_WEIGHTS_TRIAL_H
#define ST_SESSION_WEIGHTS_TRIAL_H

#include <stdbool.h>
#include <stddef.h>

enum {
    ST_TRIAL_ROUNDS = 5,
    ST_TRIAL_TURNS = 4, // of a round: with, without, without, with, so that a trend cancels out
    ST_TRIAL_STEPS = ST_TRIAL_ROUNDS * ST_TRIAL_TURNS,
    ST_TRIAL_PERIOD = 256, // steps
};

// Zeroed: no step has run yet.
struct st_trial {
    size_t step;
    double gains[ST_TRIAL_ROUNDS]; // seconds that its steps without took longer
    bool pays;
};

// Whether the next step does it.
bool st_trial_next(const struct st_trial *trial);
// That step took so long. One that failed is not noted, and st_trial_next() says the same again.
void st_trial_note(struct st_trial *trial, double seconds);

#endif

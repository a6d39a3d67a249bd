// SPDX-License-Identifier: Apache-2.0
#include "session/weights/trial.h"

bool st_trial_next(const struct st_trial *t) {
    size_t at = t->step % ST_TRIAL_PERIOD, turn = at % ST_TRIAL_TURNS;
    return at < ST_TRIAL_STEPS ? turn == 0 || turn + 1 == ST_TRIAL_TURNS : t->pays;
}

// A few steps may wait for something else.
static double median(const double *gains) {
    for (size_t i = 0;; i++) {
        size_t less = 0, equal = 0;
        for (size_t j = 0; j < ST_TRIAL_ROUNDS; j++) {
            less += gains[j] < gains[i];
            equal += gains[j] == gains[i];
        }
        if (less <= ST_TRIAL_ROUNDS / 2 && ST_TRIAL_ROUNDS / 2 < less + equal) return gains[i];
    }
}

void st_trial_note(struct st_trial *t, double seconds) {
    bool with = st_trial_next(t);
    size_t at = t->step++ % ST_TRIAL_PERIOD;
    if (at >= ST_TRIAL_STEPS) return;
    double *gain = &t->gains[at / ST_TRIAL_TURNS];
    if (at % ST_TRIAL_TURNS == 0) *gain = 0.0;
    *gain += with ? -seconds : seconds;
    if (at + 1 == ST_TRIAL_STEPS) t->pays = median(t->gains) > 0.0;
}

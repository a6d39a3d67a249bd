// SPDX-License-Identifier: Apache-2.0
// What searching, comparing and training precision schedules share: options with defaults, progress
// and results.
#ifndef ST_EVAL_SCHEDULE_RUN_H
#define ST_EVAL_SCHEDULE_RUN_H

#include "model/model.h"

struct st_schedule_run {
    const struct stint_model *model;
    stint_schedule_options options;
    uint32_t n_tokens, n_candidates;
    unsigned high, low; // the highest nested precision and the one below it
    double epsilon;
    bool by_bits;   // the cheapest schedule has the fewest bits, not the shortest time
    uint64_t begun; // ns
    uint64_t done, total;
};

// STINT_E_ARG if an argument is NULL or no data are given.
stint_status st_schedule_run_begin(const struct stint_model *model,
                                   const stint_schedule_options *options,
                                   const stint_schedule_result *result,
                                   struct st_schedule_run *run);
// Reports one more step. STINT_E_CANCELED if the caller asks to stop.
stint_status st_schedule_run_step(struct st_schedule_run *run, const char *what);
// Copies `out` and the time it took, as far as the caller's struct reaches.
void st_schedule_run_finish(const struct st_schedule_run *run, stint_schedule_result *out,
                            stint_schedule_result *result);

#endif

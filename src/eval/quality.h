// SPDX-License-Identifier: Apache-2.0
// The quality of answers that were generated with one schedule, item by item.
#ifndef ST_EVAL_QUALITY_H
#define ST_EVAL_QUALITY_H

#include "eval/fork.h"
#include "eval/overlap.h"
#include "eval/tasks.h"

enum st_quality_metric { ST_ROUGE_L, ST_BLEU, ST_TOKEN_F1, ST_AGREEMENT, ST_QUALITY_METRICS };

// name NULL: ROUGE-L. STINT_E_ARG lists the known names.
stint_status st_quality_find(const char *name, enum st_quality_metric *metric);

struct st_quality {
    struct st_mean mean, less; // of the scores; of their differences to the reference
    struct st_bleu bleu;
    uint64_t bits, steps;
    double last; // of the newest item
};

// Adds the fork's answer; `reference` is the score of INT8 on the same item.
stint_status st_quality_add(struct st_quality *quality, enum st_quality_metric metric,
                            const struct st_fork *fork, char *const *expected, size_t n,
                            double reference);
double st_quality_value(const struct st_quality *quality, enum st_quality_metric metric);
double st_quality_bits(const struct st_quality *quality); // average per step

#endif

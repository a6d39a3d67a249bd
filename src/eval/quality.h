// SPDX-License-Identifier: Apache-2.0
// The quality of answers that were generated with one schedule, item by item.
#ifndef ST_EVAL_QUALITY_H
#define ST_EVAL_QUALITY_H

#include "eval/fork.h"
#include "eval/overlap.h"
#include "eval/tasks.h"

// KL: of the distributions behind the reference's answer; less is better.
enum st_quality_metric {
    ST_ROUGE_L,
    ST_BLEU,
    ST_TOKEN_F1,
    ST_AGREEMENT,
    ST_KL,
    ST_QUALITY_METRICS
};

// name NULL: ROUGE-L. STINT_E_ARG lists the known names.
stint_status st_quality_find(const char *name, enum st_quality_metric *metric);

struct st_quality {
    struct st_mean mean, less; // of the scores; of what they are worse by than the reference
    struct st_bleu bleu;
    uint64_t bits, steps;
    double seconds;
    double last; // of the newest item
};

struct st_quality_of_item {
    const struct st_fork *fork; // its answer
    char *const *expected;      // [n]
    size_t n;
    double reference; // score of the reference
    double seconds;   // that the answer costs
};

// Adds an answer.
stint_status st_quality_add(struct st_quality *quality, enum st_quality_metric metric,
                            const struct st_quality_of_item *item);
double st_quality_value(const struct st_quality *quality, enum st_quality_metric metric);
double st_quality_bits(const struct st_quality *quality);    // average per step
double st_quality_seconds(const struct st_quality *quality); // average per item

#endif

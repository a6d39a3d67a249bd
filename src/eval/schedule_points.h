// SPDX-License-Identifier: Apache-2.0
// Ways of selecting precisions, tried on the same prompts: what searching and comparing schedules
// share.
#ifndef ST_EVAL_SCHEDULE_POINTS_H
#define ST_EVAL_SCHEDULE_POINTS_H

#include "eval/precision_times.h"
#include "eval/quality.h"
#include "eval/schedule_run.h"
#include "session/precision/schedule.h"

enum { ST_POINTS = 256 };

enum st_rule {
    ST_BY_REFERENCE, // another model, which has no precisions
    ST_BY_PRECISION,
    ST_BY_LEARNED,
    ST_AT_RANDOM,       // high up to a random step
    ST_AT_RANDOM_STEPS, // each step high or low
    ST_IN_TURN,
    ST_IN_PART
};

struct st_point {
    stint_schedule_point out;
    enum st_rule rule;
    struct st_precision_schedule schedule;
    unsigned part; // of three, for IN_PART
    struct st_quality quality;
    double *scores, *bits; // [items] each, where the set keeps them
    uint32_t *steps;       // [items, ST_PRECISION_INT8 + 1] likewise
    bool dropped;
};

struct st_points {
    struct st_schedule_run run;
    enum st_quality_metric metric;
    struct st_items items;
    char **own;        // [items] the reference's answers, for ST_AGREEMENT
    double *reference; // [items] their scores
    struct st_precision_times times;
    struct st_fork fork, other;        // of the model; of the reference, if it is another one
    struct st_written target;          // of the reference on the present item, for ST_KL
    struct st_point points[ST_POINTS]; // 0: the reference
    size_t n, from;                    // points[from, n) are being tried
    bool too_many;                     // more were added than there is room for
    bool keeps_scores;
};

// Reads the prompts and calls fn with a set whose only point is the reference; *result gets what
// fn leaves in `out`.
typedef stint_status st_points_fn(struct st_points *set, stint_schedule_result *out);
stint_status st_points_run(const struct stint_model *model, const stint_schedule_options *options,
                           stint_schedule_result *result, st_points_fn *fn);

// NULL: no room is left, and too_many is set.
struct st_point *st_points_add(struct st_points *set, const char *name, enum st_rule rule,
                               const stint_precision *precision);
// Tries all points that were added since the last call, and tells the caller. prune: those that are
// certainly too bad are dropped early.
stint_status st_points_try(struct st_points *set, bool prune);

// Answers item i at a point: to see more of it than its quality.
stint_status st_points_answer(struct st_points *set, struct st_point *point, size_t i);

// It loses no more than epsilon: a share of the reference's quality, or for KL the divergence.
bool st_point_is_good(const struct st_points *set, const struct st_point *point);

#endif

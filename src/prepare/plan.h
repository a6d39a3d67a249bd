// SPDX-License-Identifier: Apache-2.0
// Which linears run with shadow execution (llm.npu, section 3.3): their importance, and how many of
// the least important ones can do without before the model gets worse.
#ifndef ST_PREPARE_PLAN_H
#define ST_PREPARE_PLAN_H

#include "model/model.h"
#include "prepare/outliers.h"

// What is known of one linear after calibration.
struct st_planned {
    char name[ST_INT8_NAME_BYTES];
    enum st_int8_role role;
    uint32_t layer, expert;
    float scales[2]; // shadowed, pruned
    float importance;
    size_t n_in, n_outliers, n_hot; // channels: all, beyond the threshold, hot
    double per_token;               // elements beyond the threshold
    double cold_per_token;          // of these, in channels that are not hot
    double cover[ST_COVER_POINTS];  // how skewed they are, as st_outlier_cover() says
    int32_t *hot;                   // [n_in], owned
    bool shadowed;
    bool written;         // its columns are in the package,
    size_t first_section; // from this one on
};

struct st_plan {
    struct st_planned *linears; // owned; in the order of a forward pass
    size_t n, capacity;
    uint32_t *by_importance; // [n], the least first; owned
};

// Adds a linear with its statistics, which are complete. STINT_E_NOMEM.
stint_status st_plan_add(struct st_plan *plan, const char *name, enum st_int8_role role,
                         uint32_t layer, uint32_t expert, const struct st_input_stats *stats);
void st_plan_close(struct st_plan *plan);

// Sorts by importance; after the last addition.
stint_status st_plan_rank(struct st_plan *plan);
// The share `pruned` of the least important linears runs without shadow; of the others, those that
// met an outlier run with it.
void st_plan_prune(struct st_plan *plan, double pruned);
// NULL if there is none of that name.
const struct st_planned *st_plan_find(const struct st_plan *plan, const char *name);

#endif

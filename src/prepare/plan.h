// SPDX-License-Identifier: Apache-2.0
// Decides how the inputs of each linear are quantized, by its importance: the least important ones
// take the cheaper way as long as the model does not get worse. On a device with static scales the
// ways are clipping and shadow execution (llm.npu, section 3.3); on one with row scales
// (device/device.h) they are one term and two.
#ifndef ST_PREPARE_PLAN_H
#define ST_PREPARE_PLAN_H

#include "model/model.h"
#include "prepare/outliers.h"

// One linear after calibration.
struct st_planned {
    char name[ST_INT8_NAME_BYTES];
    enum st_int8_role role;
    uint32_t layer, expert;
    float scales[2];  // with shadow execution, pruned
    float input[2];   // what the package holds (ST_INT8_INPUT)
    float importance; // on a device with static scales
    float row_error;  // with row scales: of a row by rounding, as a share of its energy
    size_t n_in, n_outliers, n_hot; // channels: all, those beyond the threshold, hot ones
    double per_token;               // elements beyond the threshold
    double cold_per_token;          // of these, in channels that are not hot
    double cover[ST_COVER_POINTS];  // the skew of the outliers, by st_outlier_cover()
    int32_t *hot;                   // [n_in], owned
    bool own_scales;                // each row of its input has a scale whatever the others have
    bool shadowed;
    bool written;         // its columns are in the package
    size_t first_section; // the first section of its columns
};

struct st_plan {
    bool row_scales;
    struct st_planned *linears; // owned; in the order of a forward pass
    size_t n, capacity;
    uint32_t *by_importance; // [n] ascending; owned
};

// Adds a linear with its complete statistics. STINT_E_NOMEM.
stint_status st_plan_add(struct st_plan *plan, const char *name, enum st_int8_role role,
                         uint32_t layer, uint32_t expert, const struct st_input_stats *stats);
void st_plan_close(struct st_plan *plan);

// Sorts by what counts with row scales (o first) or without. Call after the last addition, and
// again after a change of row_scales.
stint_status st_plan_rank(struct st_plan *plan);
// The share of the linears that are an o. pre: there is a linear.
double st_plan_share_of_o(const struct st_plan *plan);
// Sets the share `pruned` of the least important linears to run without shadow execution. Of the
// others, those that met an outlier run with it. With row scales: to run in one term, the others in
// two.
void st_plan_prune(struct st_plan *plan, double pruned);
// NULL if no linear has that name.
const struct st_planned *st_plan_find(const struct st_plan *plan, const char *name);

#endif

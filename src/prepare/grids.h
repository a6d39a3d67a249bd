// SPDX-License-Identifier: Apache-2.0
// The grids of a panel's groups, at each precision: the values that codes stand for.
#ifndef ST_PREPARE_GRIDS_H
#define ST_PREPARE_GRIDS_H

#include "prepare/quantize.h"

// Of a group: code c of precision low + b stands for scale * c + minimum.
struct st_grid {
    float scale[ST_PANEL_PRECISIONS][ST_NESTED_PANEL],
        minimum[ST_PANEL_PRECISIONS][ST_NESTED_PANEL];
};

static inline size_t st_panel_groups(size_t k) {
    return st_ceil_div(k, ST_NESTED_GROUP);
}

static inline unsigned st_panel_precisions(const struct st_panel *panel) {
    return panel->high - panel->low + 1;
}

// How much an error counts at precision low + b, against 1 at the highest.
float st_panel_share(const struct st_panel *panel, unsigned b);

// Fits the grids of all groups to the weights and rounds them to what a package holds, in
// panel->groups and panel->rows.
void st_grids_fit(struct st_panel *panel, struct st_grid *grids);

// Sets the grid of a group, precision and row to the multiples of the row's floats next to it.
void st_grid_put(struct st_panel *panel, struct st_grid *grids, size_t group, unsigned b, size_t r,
                 float scale, float minimum);

#endif

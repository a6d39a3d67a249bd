// SPDX-License-Identifier: Apache-2.0
// The grids of a panel's groups, at each precision: the values that codes stand for.
#ifndef ST_PREPARE_GRIDS_H
#define ST_PREPARE_GRIDS_H

#include "base/size.h"
#include "prepare/quantize.h"

// Of a group: code c of precision low + b stands for scale * c + minimum.
struct st_grid {
    float scale[ST_PANEL_PRECISIONS][ST_PANEL_ROWS], minimum[ST_PANEL_PRECISIONS][ST_PANEL_ROWS];
};

static inline size_t st_panel_groups(size_t k) {
    return st_ceil_div(k, ST_NESTED_GROUP);
}

static inline unsigned st_panel_precisions(const struct st_panel *panel) {
    return panel->high - panel->low + 1;
}

// Of the scratch: the grids, then what is missed.
static inline size_t st_panel_grid_floats(size_t k) {
    return st_panel_groups(k) * (sizeof(struct st_grid) / sizeof(float));
}

// How much an error counts at precision low + b, against 1 at the highest: a quarter of one with a
// bit more, so that all count about the same, as it is four times as large.
static inline float st_panel_share(const struct st_panel *panel, unsigned b) {
    return 1.0f / (float)(1u << 2 * (panel->high - panel->low - b));
}

#endif

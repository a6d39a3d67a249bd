// SPDX-License-Identifier: Apache-2.0
// Shadow columns that stay in memory under a bound, beside those of hot channels: each linear has
// room for some of its own. What was used since it was last looked at stays (second chance). Only
// columns whose hash was right come here.
#ifndef ST_SESSION_COLUMNS_H
#define ST_SESSION_COLUMNS_H

#include "base/arena.h"
#include "model/model.h"

#include <stdbool.h>

// Of one linear.
struct st_kept {
    const int8_t *columns; // which linear: where its columns lie in the package
    uint32_t n_in, n_room; // channels; columns there is room for
    size_t rows;           // bytes of a column
    int32_t *place;        // [n_in] in `data`, or -1
    uint32_t *channel;     // [n_room] of each place that is taken
    uint8_t *used;         // [n_room] since the hand came by
    int8_t *data;          // [n_room, rows]
    uint32_t n_taken, hand;
};

struct st_columns {
    unsigned steps;          // ST_STEPS_* of the linears whose columns steps use
    double share;            // of each linear's cold columns
    struct st_kept *linears; // [n_linears] by address of their columns
    uint32_t n_linears;
};

// Cold columns of a linear; 0 if it has no shadow execution.
uint32_t st_columns_cold(const struct st_int8_weight *weight);
// Of these, as many as stay.
uint32_t st_columns_room(const struct st_columns *columns, const struct st_int8_weight *weight);
// Bytes for all cold columns of these linears, with tables.
uint64_t st_columns_bytes(const struct stint_model *model, unsigned steps);
// Sets the share that fits into `bytes`.
void st_columns_plan(const struct stint_model *model, unsigned steps, uint64_t bytes,
                     struct st_columns *columns);
// Runs twice on `arena` (base/arena.h); afterwards none is kept.
void st_columns_lay_out(struct st_columns *columns, const struct stint_model *model,
                        struct st_arena *arena);

// NULL: none of this linear stay.
struct st_kept *st_columns_of(const struct st_columns *columns,
                              const struct st_int8_weight *weight);
// NULL if it is not there. It remains valid until st_columns_keep().
const int8_t *st_columns_find(struct st_kept *kept, uint32_t channel);
// Copies a column that is not there. Channels that are marked in held [n_in] do not make room for
// it; then it may find none.
void st_columns_keep(struct st_kept *kept, uint32_t channel, const int8_t *column,
                     const uint8_t *held);

#endif

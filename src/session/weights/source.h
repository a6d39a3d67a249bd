// SPDX-License-Identifier: Apache-2.0
// Where weights are: in the mapped file, or streamed and pinned under a bound of memory
// (weights/bounded.h). The pass and the linear ops ask a source for ranges of them.
#ifndef ST_SESSION_WEIGHTS_SOURCE_H
#define ST_SESSION_WEIGHTS_SOURCE_H

#include "device/device.h"
#include "session/session.h"

struct st_weight_source {
    const char *name;
    // Rows of the embedding, as floats [n, embed].
    stint_status (*embed)(const struct st_run *run, const int32_t *ids, float *rows);
    // Where a nested linear's codes and tables are.
    const struct st_nested_weight *(*nested)(const struct stint_session *s,
                                             const struct st_nested_weight *weight);
    // Waits for packed rows: sets part->slices, slice_groups and n_groups to what is there from
    // part->group on. They stay until they are released. NULL: all are where graphs were compiled.
    stint_status (*acquire)(const struct st_run *run, struct st_linear_id id,
                            struct st_stage_part *part);
    void (*release)(const struct st_run *run, struct st_linear_id id,
                    const struct st_stage_part *part);
    // The rest may be NULL.
    // An expert of the batch, before the first of them runs.
    void (*expect)(const struct st_run *run, uint32_t expert);
    // After a layer: begins to fetch what the next one will need.
    stint_status (*look_ahead)(const struct st_run *run);
    // What the next batches use: a prompt's, or steps.
    void (*begin)(struct stint_session *s, enum st_phase phase);
    void (*end)(struct stint_session *s, stint_status status); // after each batch
};

extern const struct st_weight_source st_source_mapped, st_source_bounded;

#endif

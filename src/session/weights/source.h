// SPDX-License-Identifier: Apache-2.0
// Weight sources: the mapped file, or streamed and pinned weights under a memory bound
// (weights/bounded.h). The pass and the linear ops acquire ranges of weights from a source.
#ifndef ST_SESSION_WEIGHTS_SOURCE_H
#define ST_SESSION_WEIGHTS_SOURCE_H

#include "device/device.h"
#include "model/embedding.h"
#include "session/linear/rows.h"

// Panels [first, first + n) of a nested linear at the precision of a run, as a weight of their own.
struct st_panels {
    struct st_nested_weight weight;
    size_t first, n;
};

struct st_weight_source {
    const char *name;
    // Writes the batch's rows of a table as floats [n, width].
    stint_status (*embed)(const struct st_run *run, enum st_table table, const int32_t *ids,
                          float *rows);
    // Returns the codes and tables of a nested linear. NULL: they come panel by panel.
    const struct st_nested_weight *(*nested)(const struct st_run *run,
                                             const struct st_nested_weight *weight);
    // Waits for panels of such a linear: from panels->first on, as many as lie together in memory.
    // They stay until they are released.
    stint_status (*acquire_panels)(const struct st_run *run, const struct st_nested_weight *weight,
                                   struct st_panels *panels);
    void (*release_panels)(const struct st_run *run, const struct st_nested_weight *weight,
                           const struct st_panels *panels);
    // Waits for packed rows: sets part->slices, slice_groups and n_groups to the slices in memory
    // from part->group on, which stay until they are released. NULL: all weights are where the
    // graphs were compiled.
    stint_status (*acquire)(const struct st_run *run, struct st_linear_id id,
                            struct st_linear_op_part *part);
    void (*release)(const struct st_run *run, struct st_linear_id id,
                    const struct st_linear_op_part *part);
    // The same for rows of a float linear that is read on demand: from rows->first on, as many as
    // lie together in memory. They stay until they are released. NULL: no linear is.
    stint_status (*acquire_rows)(const struct st_run *run, const struct st_linear_weight *weight,
                                 struct st_rows *rows);
    void (*release_rows)(const struct st_run *run, const struct st_linear_weight *weight,
                         const struct st_rows *rows);
    // The rest may be NULL.
    // Names an expert of the batch, before the first expert runs.
    void (*expect)(const struct st_run *run, uint32_t expert);
    // Called after a layer: prefetches what the next one needs.
    stint_status (*look_ahead)(const struct st_run *run);
    // Tells that a sequence is about to hold n_tokens.
    void (*reach)(struct stint_session *s, uint32_t sequence, size_t n_tokens);
    // Tells whether the next batch is of a prompt or a step, its precision (0: not nested), and
    // its tokens, at most.
    void (*begin)(struct stint_session *s, enum st_phase phase, unsigned bits, size_t n);
    void (*end)(struct stint_session *s, stint_status status); // after each batch
};

extern const struct st_weight_source st_source_mapped, st_source_bounded;

#endif

// SPDX-License-Identifier: Apache-2.0
// Float linears to W8 (docs/NUMERICS.md): symmetric, one scale per output channel or per tensor,
// packed as kernels/int8.h says, written row panel by row panel.
#ifndef ST_PREPARE_PACK_H
#define ST_PREPARE_PACK_H

#include "format/package.h"
#include "model/weights_int8.h"
#include "model/weights.h"
#include "prepare/levels.h"

struct st_packer; // scratch

stint_status st_packer_open(const struct st_config *config, struct st_packer **packer);
void st_packer_close(struct st_packer *packer); // accepts NULL

// What one linear is made of: float parts in the order of the stage (q, k, v; gate, up; one).
struct st_pack_source {
    enum st_int8_role role;
    uint32_t layer, expert;
    const struct st_linear_weight *parts[ST_STAGE_PARTS];
    bool per_tensor; // one scale for all rows
    float *norms;    // [n_in] gets the squared norms of the weights' columns; or NULL
    const struct st_levels *levels; // of neurons that are stored so (neurons.h); or NULL
};

// Which part and which of its rows a packed row of the stage is; false for padding.
bool st_pack_find_row(const struct st_stage *stage, size_t packed, uint32_t *part, size_t *row);

// Writes the sections of the linear's weights. STINT_E_FORMAT where a weight is not finite.
stint_status st_pack_linear(struct st_packer *packer, const struct st_pack_source *source,
                            struct st_package_writer *writer);

// The same of a linear that has no role: one part, with this name and shape.
stint_status st_pack_named(struct st_packer *packer, const char *name, const struct st_stage *stage,
                           const struct st_linear_weight *weight, struct st_package_writer *writer);

// Writes a section LINEAR ENDING of n numbers of four bytes.
stint_status st_pack_section(struct st_package_writer *writer, const char *linear,
                             const char *ending, enum st_section_type type, const void *data,
                             size_t n);

// columns.c: writes the weights of a shadowed linear once more, by channel, with a scale per
// channel beside those of the packed rows (.columns, .column_checks, .column_scales).
// STINT_E_NOMEM.
stint_status st_pack_columns(const struct st_config *config, const struct st_pack_source *source,
                             const float *row_scales, struct st_package_writer *writer);

#endif

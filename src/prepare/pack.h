// SPDX-License-Identifier: Apache-2.0
// Converts float linears to W8 (docs/NUMERICS.md): symmetric, with a scale per output channel or
// per tensor, in the layout of kernels/int8.h, written panel by panel.
#ifndef ST_PREPARE_PACK_H
#define ST_PREPARE_PACK_H

#include "base/thread.h"
#include "format/package.h"
#include "model/weights_int8.h"
#include "model/weights.h"
#include "prepare/levels.h"
#include "prepare/slopes.h"

struct st_packer; // scratch

stint_status st_packer_open(const struct st_config *config, struct st_packer **packer);
void st_packer_close(struct st_packer *packer); // accepts NULL

// A linear: its float parts in the order of the linear op (q, k, v; gate, up; one).
struct st_pack_source {
    enum st_int8_role role;
    uint32_t layer, expert;
    const struct st_linear_weight *parts[ST_LINEAR_OP_PARTS];
    bool per_tensor; // one scale for all rows
    float *norms;    // [n_in] set to the squared norms of the weights' columns; or NULL
    const struct st_levels *levels; // for neurons stored in 4 bits (neurons.h); or NULL
    // Weights are rounded by the error of the outputs (descent.h), INT8 ones unless each shall
    // be the nearest: slopes of the inputs or NULL, their largest magnitudes, and who computes.
    const struct st_slopes *slopes;
    const float *max;
    bool nearest;
    struct st_pool *pool;
};

// Writes the sections of the linear's weights. STINT_E_FORMAT if a weight is not finite.
stint_status st_pack_linear(struct st_packer *packer, const struct st_pack_source *source,
                            struct st_package_writer *writer);

// Writes the scales and biases alone, of weights that are stored with the nested codes
// (st_nested_pack). *scales [packed rows] are borrowed until the next linear.
stint_status st_pack_scales(struct st_packer *packer, const struct st_pack_source *source,
                            struct st_package_writer *writer, const float **scales);

// st_pack_linear() for a linear without a role: one part with this name and shape.
stint_status st_pack_named(struct st_packer *packer, const char *name,
                           const struct st_linear_op *linear_op,
                           const struct st_linear_weight *weight, struct st_package_writer *writer);

// Writes the section `linear` + `ending` with n numbers of four bytes.
stint_status st_pack_section(struct st_package_writer *writer, const char *linear,
                             const char *ending, enum st_section_type type, const void *data,
                             size_t n);

// columns.c: writes a second copy of a shadowed linear's weights, by channel, with a scale per
// channel besides those of the packed rows (.columns, .column_checks, .column_scales).
// STINT_E_NOMEM.
stint_status st_pack_columns(const struct st_config *config, const struct st_pack_source *source,
                             const float *row_scales, struct st_package_writer *writer);

#endif

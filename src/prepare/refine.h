// SPDX-License-Identifier: Apache-2.0
// The lower bits of nested codes, which make INT8 weights of them (kernels/nested_int8.h).
#ifndef ST_PREPARE_REFINE_H
#define ST_PREPARE_REFINE_H

#include "format/package.h"
#include "kernels/nested_int8.h"
#include "prepare/pack.h"
#include "prepare/quantize.h"

// Up to ST_PANEL_ROWS rows, side by side: element i of row r is at i * ST_PANEL_ROWS + r.
struct st_refined {
    // Its rows and its groups of `high` bits are set, its codes are not read.
    const struct st_nested_weight *weight;
    size_t row, n_rows;             // of the weight; fewer ones are followed by zeros
    const float *scales;            // [n_rows] of the INT8 weights
    const struct st_slopes *slopes; // of the inputs; or NULL: each weight to the nearest
    const float *max;               // [k] with slopes: the inputs' largest magnitudes
    float *w;      // [k, rows] the source's weights; becomes them over their scales
    uint8_t *code; // [k, rows] of weight->high bits; gets those below
    int32_t *sums; // [n_rows] out: of the INT8 weights
};

// Floats of the scratch for rows of k weights.
size_t st_refine_scratch(const struct st_tile *tile, size_t k);
// The INT8 weights are as near to the source's, or with slopes their outputs are, as they can be
// with the upper bits as they stand.
void st_refine_panel(const struct st_refined *panel, float *scratch);

// A packed linear's scales and sums, in the order of its parts' rows.
struct st_refined_parts {
    struct st_linear_op linear_op;
    char name[ST_INT8_NAME_BYTES];
    size_t begin[ST_LINEAR_OP_PARTS]; // of a part's rows
    float *scales;                    // owned; NULL: the linear is not made of its codes
    int32_t *sums;                    // owned
};

// scales: [packed rows], or NULL. STINT_E_NOMEM.
stint_status st_refined_parts_open(const struct st_config *config,
                                   const struct st_pack_source *source, const float *scales,
                                   struct st_refined_parts *parts);
void st_refined_parts_close(struct st_refined_parts *parts);
// Writes the sums as the packed rows' section. STINT_E_NOMEM, E_IO.
stint_status st_refined_parts_write(const struct st_refined_parts *parts,
                                    struct st_package_writer *writer);

#endif

// SPDX-License-Identifier: Apache-2.0
// The lower bits of nested codes, which make INT8 weights of them (kernels/nested_int8.h).
#ifndef ST_PREPARE_REFINE_H
#define ST_PREPARE_REFINE_H

#include "format/package.h"
#include "kernels/nested_int8.h"
#include "prepare/pack.h"

// Gives the codes code[0, n_in) of row `row` of w, which have w->high bits, those below: the INT8
// weights are as near to x[i * x_step] / scale as they can be. w: its rows and its groups of `high`
// bits are set, its codes are not read. Returns the sum of the INT8 weights.
int32_t st_refine_row(const struct st_nested_weight *w, size_t row, float scale, const float *x,
                      size_t x_step, uint8_t *code);

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

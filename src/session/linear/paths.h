// SPDX-License-Identifier: Apache-2.0
// Linears that share an input by a path of kernels/linear.h, on all cores: the rows of all of them
// are one list of blocks.
#ifndef ST_SESSION_LINEAR_PATHS_H
#define ST_SESSION_LINEAR_PATHS_H

#include "session/linear/op.h"
#include "session/linear/rows.h"

struct st_path_product {
    const struct st_run *run;
    const struct st_linear_path *path;
    const struct st_operands *operands; // for where outputs go
    const float *x;                     // [n_tokens, k]
    size_t n_tokens, k;
    const struct st_linear_weight *const *weights;
    size_t n_linears, selecting; // tokens that the path was selected for
    uint32_t on_device;          // bits of the linears whose products a device has computed
    // Set here.
    struct st_linear_kernels kernels;
    const struct st_rows *rows;            // of each linear, those at hand
    size_t block_rows[ST_MAX_LINEARS];     // of one item of each linear
    size_t first_item[ST_MAX_LINEARS + 1]; // of each linear
};

// Before the rows: selects kernels, and packs the input where the path wants that.
void st_path_begin(struct st_path_product *product);
// The products of rows at hand, which are of all linears or of some; an st_rows_fn.
void st_path_rows(void *product, const struct st_rows *rows);
// In place of them, all rows of two linears in place by the path's gated(); sets operands->gating.
void st_path_gated(struct st_path_product *product);

#endif

// SPDX-License-Identifier: Apache-2.0
// One set of weights for prompts and steps (docs/FORMAT.md): a linear whose INT8 panels are made
// of its nested codes when a chunk passes; a step multiplies straight from them.
#ifndef ST_DEVICE_WEIGHT_SET_H
#define ST_DEVICE_WEIGHT_SET_H

#include "base/status.h"
#include "device/subgraph.h"
#include "kernels/nested_int8.h"

// The parts of a packed linear, in the order of its outputs: q, k and v; gate and up.
struct st_weight_set {
    struct st_nested_weight codes[ST_LINEAR_OP_PARTS]; // groups of `high` bits alone
    const struct st_nested_int8_row *rows[ST_LINEAR_OP_PARTS];
    uint32_t first[ST_LINEAR_OP_PARTS]; // panel of a part that its codes and rows begin with
    uint32_t n_parts;
};

// Writes halves of packed panels, of ST_NESTED_PANEL rows each: [half, half + n), which `set` has.
// `panels`: packed panel half / 2 and the following ones.
void st_weight_set_halves(const struct st_linear_op *linear_op, const struct st_weight_set *set,
                          const struct st_nested_int8_kernel *kernel, size_t half, size_t n,
                          int8_t *panels);
// Writes packed panels [panel, panel + n) of a linear that has a set.
void st_weight_set_panels(const struct st_linear_op *linear_op,
                          const struct st_nested_int8_kernel *kernel, size_t panel, size_t n,
                          int8_t *panels);
// Sums of packed panels [panel, panel + n) for n_tokens rows of input, as the kernel takes them:
// sums[t * sum_row + i] of packed row i behind the first.
void st_weight_set_products(const struct st_linear_op *linear_op,
                            const struct st_nested_int8_kernel *kernel, size_t panel, size_t n,
                            const uint8_t *x, size_t x_row, size_t n_tokens, int32_t *sums,
                            size_t sum_row);
// Writes all packed panels to new memory, which is to be freed. STINT_E_NOMEM.
stint_status st_weight_set_all(const struct st_linear_op *linear_op, int8_t **panels);
#endif

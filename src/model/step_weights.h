// SPDX-License-Identifier: Apache-2.0
// The weights that a step reads, one range at a time. Whoever counts or reads the bytes of a step
// asks here: what a model costs, how fast memory is, what a memory bound does.
#ifndef ST_MODEL_STEP_WEIGHTS_H
#define ST_MODEL_STEP_WEIGHTS_H

#include "model/model.h"

enum st_weight_kind {
    ST_WEIGHT_FLOAT,           // rows as the checkpoint has them
    ST_WEIGHT_INT8,            // packed panels
    ST_WEIGHT_NESTED_CODES,    // those of the precision, which are the first ones
    ST_WEIGHT_NESTED_GROUPS,   // scales and minima of a precision
    ST_WEIGHT_NESTED_ROWS,     // two floats a row and precision
    ST_WEIGHT_NESTED_OUTLIERS, // columns and values of weights that are kept in float
};

struct st_weight_piece {
    enum st_weight_kind kind;
    struct st_linear_id linear; // of a pinned one: that which it stands beside
    bool pinned; // a router, or what gates a state: no linear op computes it, and it is always in
                 // memory
    const void *data; // NULL: not in memory, or not in one run of bytes
    uint64_t bytes;
    uint64_t n_weights; // multiplied with an input; 0: they belong to those of another piece
};
typedef void st_weight_piece_fn(void *context, const struct st_weight_piece *piece);

// The linears of a step at the precision `bits`, in the order of a pass: nested weights where the
// model has them at that precision, else (as for 0) INT8, else floats. Of a mixture the first
// experts stand for those that a token takes. What no linear op computes is left out: embeddings
// and norms.
void st_step_weights_each(const struct stint_model *model, unsigned bits, st_weight_piece_fn *fn,
                          void *context);
// The INT8 and nested linears that a package stores: of all experts, at all precisions.
void st_stored_linears_each(const struct stint_model *model, st_weight_piece_fn *fn, void *context);

#endif

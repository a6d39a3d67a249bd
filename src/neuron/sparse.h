// SPDX-License-Identifier: Apache-2.0
// A feed-forward block of a few tokens from the bundles of some of its neurons (kernels/neuron.h):
// those that are left out count as zero. What it gives is the dense block's, bit for bit, where
// they are.
#ifndef ST_NEURON_SPARSE_H
#define ST_NEURON_SPARSE_H

#include "base/arena.h"
#include "base/thread.h"
#include "device/outliers.h"
#include "device/subgraph.h"
#include "device/two_term.h"
#include "format/neuron_layout.h"
#include "kernels/neuron.h"

#include <stdatomic.h>

enum {
    ST_SPARSE_ROWS = ST_TWO_TERMS * ST_NEURON_TOKENS,
    ST_SPARSE_OTHERS = 6, // sums of others, at most
};

// A neuron and where its bundle lies.
struct st_neuron_ref {
    const unsigned char *bundle;
    uint32_t neuron;
};

struct st_sparse {
    const struct st_neuron_kernel *kernel;
    const struct st_elementwise *elementwise;
    struct st_neuron_layout layout;
    size_t n_threads;
    uint8_t *x;      // [ST_SPARSE_ROWS, k] as the kernel takes it
    int32_t *sums;   // [n_threads, ST_SPARSE_ROWS, k]
    int32_t *q_sums; // [n_threads, ST_SPARSE_ROWS]
    int32_t *total;  // [ST_SPARSE_ROWS, k]
    // The block at hand.
    const struct st_linear_op *up, *down;
    size_t n_tokens, first_token; // the first one's index among outliers; set by the caller
    // Added to the outputs of `up` before its activation: row add_row[t] of add [.., packed rows]
    // for token t, nothing where that is negative. NULL: nothing at all.
    const float *add;
    const int32_t *add_row;
    struct st_outliers *outliers; // before `down`; or NULL
    atomic_size_t *clipped;
    const struct st_neuron_ref *refs;
    size_t n_refs;
    // Sums of neurons that another processor computed, [2 n_tokens, outputs of `down`] each.
    const int32_t *others[ST_SPARSE_OTHERS];
    size_t n_others;
};

// layout and n_threads must be set. Runs twice on `arena` (base/arena.h).
void st_sparse_lay_out(struct st_sparse *sparse, struct st_arena *arena);

// The row of `up`'s packed ones that has a neuron's row 0 (up, or gate) or 1 (up behind a gate).
size_t st_sparse_packed_row(const struct st_linear_op *up, uint32_t neuron, size_t row);

// Begins a block: x [n_tokens, ST_TWO_TERMS], rows x_row apart, holds what `zero` stands for.
void st_sparse_begin(struct st_sparse *sparse, const uint8_t *x, size_t x_row, uint8_t zero,
                     size_t n_tokens);
// The same, of the input and with the members of a block that has begun, on other threads.
void st_sparse_share(struct st_sparse *sparse, const struct st_sparse *begun);
void st_sparse_clear(struct st_sparse *sparse); // its sums are 0
// Adds neurons; in any order, and any number of times.
void st_sparse_add(struct st_sparse *sparse, struct st_pool *pool, const struct st_neuron_ref *refs,
                   size_t n_refs);
// Instead of an end: the exact sums [2 n_tokens, outputs of `down`], for the others of another
// block.
const int32_t *st_sparse_sums(struct st_sparse *sparse);
// y [n_tokens, y_row] = what `down` gives.
void st_sparse_end(struct st_sparse *sparse, struct st_pool *pool, float *y, size_t y_row);

#endif

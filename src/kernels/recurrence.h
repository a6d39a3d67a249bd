// SPDX-License-Identifier: Apache-2.0
// Layers whose memory of a text is a matrix: each token fades it and adds a product of two vectors,
//   S = decay S + key (x) value,   out = S^T query
// (Mamba-2: Dao and Gu 2024, section 3). By the delta rule a token adds only what the matrix does
// not give for its key yet (Gated Delta Networks: Yang et al. 2024, section 3):
//   value = rate (value - decay S^T key)   first.
// Columns do not depend on each other, so a few of them stay in the first-level cache while all
// tokens of a prompt pass.
#ifndef ST_KERNELS_RECURRENCE_H
#define ST_KERNELS_RECURRENCE_H

#include <stddef.h>
#include <stdint.h>

enum { ST_STATE_PANEL = 16 }; // columns of a state that lie together

// Floats of a state of n_keys rows and n_values columns: [panels, n_keys, ST_STATE_PANEL]. Columns
// past the last one are zeros.
static inline size_t st_state_floats(size_t n_keys, size_t n_values) {
    return (n_values + ST_STATE_PANEL - 1) / ST_STATE_PANEL * ST_STATE_PANEL * n_keys;
}

// Tokens that follow each other, over one state. Rows are [n_tokens] of the given strides.
struct st_recurrence_run {
    size_t n_tokens, n_keys, n_values;
    float *state;                // st_state_floats(n_keys, n_values)
    const float *queries, *keys; // [n_keys] of each token; queries NULL: no outputs
    size_t key_row;              // of both
    float *values;               // [n_values] of each token; by the delta rule they are replaced
    size_t value_row;            // by what was added, so that a run without `rates` repeats it
    const float *decays, *rates; // of each token; rates NULL: not by the delta rule
    size_t gate_row;             // of both
    float *out;                  // [n_values] of each token
    size_t out_row;
};

// What a token gets does not depend on how many go through one call.
struct st_recurrence {
    const char *name;
    uint64_t isa;
    void (*run)(const struct st_recurrence_run *run);
};

extern const struct st_recurrence *const st_recurrences[]; // best first; ends with NULL
const struct st_recurrence *st_recurrence_select(uint64_t cpu_flags);

#endif

// SPDX-License-Identifier: Apache-2.0
// Where the states of kv/state.h lie, for state.c and matrix.c.
#ifndef ST_SESSION_KV_STATE_PLACES_H
#define ST_SESSION_KV_STATE_PLACES_H

#include "session/kv/state.h"

// Tokens between borders.
size_t st_state_stride(const struct stint_session *s);
// Whether a chunk's end is a border. Shorter ones than a state leave theirs in the ring.
bool st_state_ends_at_border(const struct stint_session *s, size_t position, size_t n);

// The run's layer among those that have a state.
size_t st_state_slot(const struct st_run *run);
// A ring's row of a position, [row].
float *st_state_ring_row(const struct st_state_cache *state, uint32_t sequence, size_t slot,
                         size_t position);
// The state that a border holds of a layer, [floats], and the matrices in one.
float *st_state_border(const struct st_state_cache *state, uint32_t sequence, size_t border,
                       size_t slot);
float *st_state_matrices(const struct st_state_cache *state, float *floats);
// The matrices of the border at which a prompt's chunk ends; NULL: it ends at none.
float *st_state_border_matrices(const struct st_run *run);

#endif

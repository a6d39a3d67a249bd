// SPDX-License-Identifier: Apache-2.0
#include "session/kv/state_places.h"

#include "base/size.h"
#include "session/session.h"

// Chunks of a split prompt are under way together, so each must find the inputs that the one before
// it leaves.
size_t st_state_stride(const struct stint_session *s) {
    return s->split.on ? s->chunk_len : st_round_up(s->kv.state.stride_min, s->chunk_len);
}

bool st_state_ends_at_border(const struct stint_session *s, size_t position, size_t n) {
    size_t stride = st_state_stride(s);
    return n >= s->kv.state.n_before && (position + n) / stride > position / stride;
}

size_t st_state_slot(const struct st_run *r) {
    return r->s->model->config.rank[r->layer] % r->s->kv.state.n_layers;
}

float *st_state_ring_row(const struct st_state_cache *state, uint32_t sequence, size_t slot,
                         size_t position) {
    size_t at = (sequence * state->n_layers + slot) * ST_STATE_RECENT + position % ST_STATE_RECENT;
    return state->recent + at * state->row;
}

float *st_state_border(const struct st_state_cache *state, uint32_t sequence, size_t border,
                       size_t slot) {
    size_t at = (sequence * state->n_borders + border) * state->n_layers + slot;
    return state->borders + at * state->floats;
}

float *st_state_matrices(const struct st_state_cache *state, float *floats) {
    return floats + state->n_before * state->inputs;
}

float *st_state_border_matrices(const struct st_run *r) {
    const struct st_state_cache *state = &r->s->kv.state;
    const struct st_batch *b = r->batch;
    if (r->phase != ST_PHASE_PREFILL || !st_state_ends_at_border(r->s, b->position, b->n))
        return NULL;
    size_t border = (b->position + b->n) / st_state_stride(r->s);
    return st_state_matrices(state, st_state_border(state, b->sequence, border, st_state_slot(r)));
}

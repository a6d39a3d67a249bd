// SPDX-License-Identifier: Apache-2.0
// The matrices among the states of kv/state.h, whose file alone uses this.
#ifndef ST_SESSION_KV_MATRIX_H
#define ST_SESSION_KV_MATRIX_H

#include "session/kv/state.h"

// Whether the matrices of a length can be had without computing tokens, as far as the rings hold
// its rows.
bool st_matrix_is_held(const struct st_state_cache *state, const struct st_state_text *text,
                       size_t length);
// Those of one layer, [matrix], of such a length.
void st_matrix_read(const struct stint_session *s, uint32_t sequence, size_t slot, size_t length,
                    float *to);
// Makes them all the sequence's own, of this length.
void st_matrix_write(struct stint_session *s, uint32_t sequence, size_t slot, size_t length,
                     const float *from);
// Before a batch: the live matrices become those of its beginning, and the bases recent enough.
void st_matrix_begin(struct stint_session *s, const struct st_state_batch *batch);
void st_matrix_end(struct stint_session *s, const struct st_state_batch *batch);

#endif

// SPDX-License-Identifier: Apache-2.0
// The embedding of a text: what the output head meets of its tokens, pooled to one vector.
#ifndef ST_SESSION_POOLED_H
#define ST_SESSION_POOLED_H

#include "session/session.h"

// Grows with the pieces of a text. Zero-initialise with `kind` and `vector`.
struct st_pooled {
    stint_pooling kind; // not DEFAULT
    size_t n;           // tokens so far
    float *vector;      // [config.embed]
};

// The kind that a model's embeddings have. STINT_E_UNSUPPORTED: the checkpoint asks for one that
// does not exist here; E_ARG.
stint_status st_pooled_kind(const struct stint_model *model, stint_pooling wanted,
                            stint_pooling *kind);
// Takes in the first n rows of what was run last.
stint_status st_pooled_add(const struct st_run *run, size_t n, struct st_pooled *pooled);
// Of length 1. STINT_E_FORMAT if the numbers are not finite.
stint_status st_pooled_finish(size_t n, struct st_pooled *pooled);

#endif

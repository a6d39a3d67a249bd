// SPDX-License-Identifier: Apache-2.0
// Keeps an answer to its constraint: of the next token's logits only those stay that the text may
// go on with.
#ifndef ST_SERVER_GUIDE_H
#define ST_SERVER_GUIDE_H

#include "chat/reasoning.h"
#include "constraint/constraint.h"
#include "model/model.h"

// Of one model: its tokens' bytes, read when the first constraint comes, and scratch. One thread.
// Zero-initialise.
struct st_guide {
    struct st_constraint_vocab *vocab;
    uint8_t *allowed; // a bit per token
};

// STINT_E_ARG: the model has no tokenizer. STINT_E_NOMEM.
stint_status st_guide_open(struct st_guide *guide, const struct stint_model *model);
void st_guide_close(struct st_guide *guide);

// Logits [vocab] of tokens that are not allowed become -infinity; those that end an answer are
// allowed where the text may end. `reasoning` is of the text so far: it may be written before the
// constraint's text begins, and the answer cannot end within it. False: no token is left.
bool st_guide_apply(struct st_guide *guide, const struct stint_model *model,
                    const struct st_reasoning *reasoning, struct st_constraint_state *state,
                    float *logits);
// Takes a token into the text; `reasoning` is of the text before it. Pre: it was allowed.
void st_guide_take(const struct stint_model *model, const struct st_reasoning *reasoning,
                   struct st_constraint_state *state, int32_t id);

#endif

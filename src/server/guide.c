// SPDX-License-Identifier: Apache-2.0
#include "server/guide.h"

#include "base/size.h"

#include <math.h>
#include <stdlib.h>

stint_status st_guide_open(struct st_guide *guide, const struct stint_model *model) {
    if (guide->vocab) return STINT_OK;
    if (!model->tokenizer)
        return st_fail(STINT_E_ARG, "a constraint needs a tokenizer, and the model has none");
    size_t n = st_max(model->config.vocab, st_tokenizer_vocab(model->tokenizer));
    if (!guide->allowed) guide->allowed = malloc(st_ceil_div(n, 8));
    if (!guide->allowed) return st_fail(STINT_E_NOMEM, "no memory for a constraint");
    return st_constraint_vocab_open(model->tokenizer, &guide->vocab);
}

void st_guide_close(struct st_guide *guide) {
    st_constraint_vocab_close(guide->vocab);
    free(guide->allowed);
    *guide = (struct st_guide){0};
}

bool st_guide_apply(struct st_guide *guide, const struct stint_model *model,
                    struct st_constraint_state *state, float *logits) {
    bool ends = st_constraint_complete(state), any = false;
    size_t n_tokens = st_tokenizer_vocab(model->tokenizer);
    st_constraint_mask(state, guide->vocab, guide->allowed);
    for (size_t id = 0; id < model->config.vocab; id++) {
        bool allowed = id < n_tokens && guide->allowed[id / 8] >> id % 8 & 1;
        if (!allowed && ends) allowed = st_model_stops(model, (int32_t)id);
        if (!allowed) logits[id] = -INFINITY;
        any |= allowed;
    }
    return any;
}

void st_guide_take(const struct stint_model *model, struct st_constraint_state *state, int32_t id) {
    char piece[ST_PIECE_MAX_BYTES];
    if (st_model_stops(model, id)) return;
    size_t n = st_tokenizer_piece(model->tokenizer, id, piece);
    st_constraint_push(state, piece, n);
}

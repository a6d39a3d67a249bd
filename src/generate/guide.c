// SPDX-License-Identifier: Apache-2.0
#include "generate/guide.h"

#include "base/size.h"
#include "chat/chat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

// Whether a token opens reasoning, or goes on with it and no further: what stands behind its end is
// the constraint's.
static bool reasons(const struct stint_model *model, const struct st_reasoning *reasoning,
                    int32_t id) {
    char piece[ST_PIECE_MAX_BYTES];
    struct st_reasoning after = *reasoning;
    size_t n = st_tokenizer_piece(model->tokenizer, id, piece);
    st_reasoning_push(&after, piece, n);
    if (n == 0 || after.phase == ST_REASONING_OVER) return false;
    return after.phase != ST_REASONING_BEFORE || after.n_mark > 0;
}

// Within a mark each token is looked at; elsewhere in reasoning it only must not end the answer.
static bool apply_reasoning(const struct stint_model *model, const struct st_reasoning *reasoning,
                            float *logits) {
    size_t n_tokens = st_tokenizer_vocab(model->tokenizer);
    bool any = false;
    for (size_t id = 0; id < model->config.vocab; id++) {
        bool allowed = id < n_tokens && !st_model_stops(model, (int32_t)id);
        if (allowed && reasoning->n_mark > 0) allowed = reasons(model, reasoning, (int32_t)id);
        if (!allowed) logits[id] = -INFINITY;
        any |= logits[id] > -INFINITY;
    }
    return any;
}

static int32_t find_opening(const struct stint_model *model) {
    const struct st_renamed_mark *renamed =
        model->chat ? st_reasoning_renamed(st_chat_template_text(model->chat)) : NULL;
    for (; renamed && renamed->token; renamed++)
        if (strcmp(renamed->as, ST_REASONING_OPEN) == 0)
            return st_tokenizer_find(model->tokenizer, renamed->token);
    return st_tokenizer_find(model->tokenizer, ST_REASONING_OPEN);
}

bool st_guide_apply(struct st_guide *guide, const struct stint_model *model,
                    const struct st_reasoning *reasoning, struct st_constraint_state *state,
                    float *logits) {
    bool before = reasoning->phase == ST_REASONING_BEFORE;
    if (reasoning->phase == ST_REASONING_INSIDE || (before && reasoning->n_mark > 0))
        return apply_reasoning(model, reasoning, logits);
    // A vocabulary that has the mark is used so; else it may begin with any of its letters.
    int32_t mark = before ? find_opening(model) : -1;
    bool ends = st_constraint_complete(state), any = false;
    size_t n_tokens = st_tokenizer_vocab(model->tokenizer);
    st_constraint_mask(state, guide->vocab, guide->allowed);
    for (size_t id = 0; id < model->config.vocab; id++) {
        bool allowed = id < n_tokens && guide->allowed[id / 8] >> id % 8 & 1;
        if (!allowed && ends) allowed = st_model_stops(model, (int32_t)id);
        if (!allowed && before && id < n_tokens)
            allowed = mark >= 0 ? (int32_t)id == mark : reasons(model, reasoning, (int32_t)id);
        if (!allowed) logits[id] = -INFINITY;
        any |= logits[id] > -INFINITY;
    }
    return any;
}

// Bytes at the front of a token that the constraint does not see.
static size_t count_reasoning(const struct st_reasoning *reasoning, const char *piece, size_t n) {
    struct st_reasoning after = *reasoning;
    st_reasoning_push(&after, piece, n);
    bool opens = after.phase != ST_REASONING_OVER &&
                 (after.phase != ST_REASONING_BEFORE || after.n_mark > 0);
    if (reasoning->phase == ST_REASONING_BEFORE) return opens ? n : 0;
    if (reasoning->phase != ST_REASONING_INSIDE) return 0;
    return after.phase == ST_REASONING_OVER ? after.answer - reasoning->n : n;
}

void st_guide_take(const struct stint_model *model, const struct st_reasoning *reasoning,
                   struct st_constraint_state *state, int32_t id) {
    char piece[ST_PIECE_MAX_BYTES];
    if (st_model_stops(model, id)) return;
    size_t n = st_tokenizer_piece(model->tokenizer, id, piece);
    size_t skip = count_reasoning(reasoning, piece, n);
    st_constraint_push(state, piece + skip, n - skip);
}

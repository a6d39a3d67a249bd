// SPDX-License-Identifier: Apache-2.0
// Log-likelihoods of token sequences under a model.
#ifndef ST_EVAL_SCORE_H
#define ST_EVAL_SCORE_H

#include "eval/items.h"
#include "eval/methods.h"

struct st_scorer {
    const struct stint_model *model;
    struct stint_session *session;
    struct st_ids last; // ids in the session after its prefix
    size_t n_prefix;
    float *logits;     // [ST_SCORE_ROWS, vocab]
    uint64_t n_tokens; // scored
};

enum { ST_SCORE_ROWS = 64 };

// n_context: length of the longest sequence. STINT_E_ARG for a model without a tokenizer.
stint_status st_scorer_open(const struct st_subject *subject, const stint_session_options *options,
                            size_t n_context, struct st_scorer *scorer);
void st_scorer_close(struct st_scorer *scorer); // accepts a zeroed one

struct st_score {
    double log_likelihood; // natural, summed over the ending's tokens
    bool greedy;           // each token was the most likely one
};

// The score of `ending` after `context`. Both are tokenized together, as in lm-evaluation-harness.
// If the text is longer than the session, its beginning is cut off.
stint_status st_score_ending(struct st_scorer *scorer, const char *context, const char *ending,
                             struct st_score *score);

// Calls fn with the logits [vocab] of each of ids[from, n - 1), which predict the next token.
typedef void st_row_fn(void *context, const float *logits, size_t vocab, int32_t next, size_t i);
stint_status st_score_rows(struct st_scorer *scorer, const int32_t *ids, size_t n, size_t from,
                           st_row_fn *fn, void *context);

// ln p of one token.
double st_log_probability(const float *logits, size_t vocab, int32_t id);

#endif

// SPDX-License-Identifier: Apache-2.0
// Log-likelihoods of token sequences under a model.
#ifndef ST_EVAL_SCORE_H
#define ST_EVAL_SCORE_H

#include "eval/items.h"
#include "eval/methods.h"

enum {
    ST_SCORE_ROWS = 64,
    ST_SCORE_TEXTS = 16, // side by side, at most
};

struct st_scorer {
    const struct stint_model *model;
    struct stint_session *session;
    size_t n_texts;                     // that are scored side by side
    struct st_ids last[ST_SCORE_TEXTS]; // ids in each sequence after its prefix
    size_t n_prefix;
    float *logits;     // [ST_SCORE_ROWS, vocab]
    uint64_t n_tokens; // scored
};

// n_context: length of the longest sequence. n_texts: at most so many are scored side by side; of
// a session whose memory is bounded, one. STINT_E_ARG for a model without a tokenizer.
stint_status st_scorer_open(const struct st_subject *subject, const stint_session_options *options,
                            size_t n_context, size_t n_texts, struct st_scorer *scorer);
void st_scorer_close(struct st_scorer *scorer); // accepts a zeroed one

struct st_score {
    double log_likelihood; // natural, summed over the ending's tokens
    bool greedy;           // each token was the most likely one
};

struct st_ending {
    const char *context, *ending;
};
// The scores of endings after their contexts, of n_texts at most. Both are tokenized together, as
// in lm-evaluation-harness. If a text is longer than the session, its beginning is cut off.
stint_status st_score_endings(struct st_scorer *scorer, const struct st_ending *endings, size_t n,
                              struct st_score *scores);

// fn is called with the logits [vocab] of each of ids[from, n - 1), which predict the next token.
typedef void st_row_fn(void *context, const float *logits, size_t vocab, int32_t next, size_t i);
struct st_scored_text {
    const int32_t *ids;
    size_t n, from;
    st_row_fn *fn;
    void *context;
};
// Text i, of n_texts at most, is sequence i of the session.
stint_status st_score_texts(struct st_scorer *scorer, const struct st_scored_text *texts, size_t n);

// ln p of one token.
double st_log_probability(const float *logits, size_t vocab, int32_t id);

#endif

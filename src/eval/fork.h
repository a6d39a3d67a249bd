// SPDX-License-Identifier: Apache-2.0
// Generates many answers to one prompt, with a precision for each step. Answers whose first steps
// have the same precisions share these steps.
#ifndef ST_EVAL_FORK_H
#define ST_EVAL_FORK_H

#include "base/buffer.h"
#include "eval/items.h"
#include "session/precision/signal.h"
#include "session/session.h"

// An answer with the logits that gave its tokens.
struct st_written {
    int32_t *ids;  // [n_tokens]
    float *logits; // [n_tokens, vocab]
    size_t n;
};

struct st_fork {
    const struct stint_model *model;
    struct stint_session *session;
    size_t n_prompt;
    int32_t *ids;       // [n_tokens] the answer
    uint8_t *bits;      // [n_tokens] precisions of the steps taken, n - 1 of them
    uint8_t *wanted;    // [n_tokens] scratch
    size_t n, n_tokens; // length of the answer, and its maximum
    bool line;          // an answer ends after its first line
    bool ended;
    float *logits;                // [vocab]
    bool watches;                 // notes the signals of the logits that gave each token
    float *signals[ST_N_SIGNALS]; // [n_tokens] each
    // Borrowed, or NULL. What is written goes to `record`. Tokens are those of `follow`, and
    // `divergence` [n_tokens] says how far the logits were from its ones (eval/divergence.h).
    struct st_written *record;
    const struct st_written *follow;
    double *divergence;
    char *text; // [text_bytes] the answer without white space around it
    size_t text_bytes;
};

// n_tokens: longest answer; n_prompt: longest prompt, of longer ones the end is used. STINT_E_ARG
// for a model without a tokenizer or nested weights; `plain` ones have 8 "bits" only.
stint_status st_fork_open(const struct stint_model *model, const stint_session_options *options,
                          size_t n_prompt, size_t n_tokens, bool plain, struct st_fork *fork);
void st_fork_close(struct st_fork *fork); // accepts a zeroed one

// Runs a prompt at a precision, after which the answer has one token.
stint_status st_fork_prompt(struct st_fork *fork, const int32_t *ids, size_t n, unsigned bits);
// chat: the text is what a user says, and the answer that of the assistant.
stint_status st_fork_prompt_text(struct st_fork *fork, const char *prompt, bool chat,
                                 unsigned bits);

// Generates the answer whose step i runs at bits[i], i < n_tokens.
stint_status st_fork_write(struct st_fork *fork, const uint8_t *bits);
// The same with a precision schedule; if it has a signal, the fork must watch.
stint_status st_fork_write_by(struct st_fork *fork, const stint_precision *precision);

// The sum of the precisions of the answer's steps.
uint64_t st_fork_sum_bits(const struct st_fork *fork);
// The number of these steps: one for every token but the first, and one for an end without a token.
size_t st_fork_steps(const struct st_fork *fork);
// The mean of divergence over the tokens that were followed; 0 without any.
double st_fork_divergence(const struct st_fork *fork);

// Room for answers of this fork; STINT_E_NOMEM.
stint_status st_written_open(const struct st_fork *fork, struct st_written *answer);
void st_written_close(struct st_written *answer); // accepts a zeroed one

#endif

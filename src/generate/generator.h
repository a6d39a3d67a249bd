// SPDX-License-Identifier: Apache-2.0
// One answer as it is generated: what was asked for, and where its text, its constraint and its
// random draws stand. It works on logits and token ids alone and knows neither sessions nor clocks,
// so the same loop serves one answer (generate.c) and a batch of them (the server):
//
//     st_generator_begin(...)                       after the prompt, whose logits are the first
//     while (st_generator_next(...) && st_generator_accept(...))
//         logits = what the model says after the accepted token
//     st_generator_finish(...)
#ifndef ST_GENERATE_GENERATOR_H
#define ST_GENERATE_GENERATOR_H

#include "chat/harmony.h"
#include "generate/guide.h"
#include "generate/sample.h"

// Borrowed while a generator is opened, but for the model and the constraint: until it is closed.
struct st_generator_options {
    const struct stint_model *model;
    const stint_sampling *sampling; // NULL: greedy
    uint32_t max_tokens;            // 0: until the context is full
    bool ignore_eos;                // without effect under a constraint
    const char *const *stops;       // [n_stops] texts that end the answer and are no part of it
    size_t n_stops;
    bool logprobs;                          // of what the model says, without penalties and biases
    uint32_t n_top;                         // likeliest tokens told beside each one, with logprobs
    const struct st_constraint *constraint; // or NULL
    // How the answer begins. Stop texts and the constraint do not apply to its reasoning.
    enum st_reasoning_phase reasoning;
    bool special; // special tokens appear in the text, as the marks of tool calls do in some models
};

// What generators on one thread share.
struct st_generator_scratch {
    const struct st_elementwise *elementwise;
    struct st_candidate *candidates; // [vocab]
    // Allocated by the first generator that needs them; st_generator_scratch_close frees them.
    float *raw; // [vocab] logits as the model gave them
    struct st_guide guide;
};
void st_generator_scratch_close(struct st_generator_scratch *scratch);

enum { ST_GENERATOR_TEXT = STINT_MAX_STOP_BYTES + 2 * (ST_PIECE_MAX_BYTES + 8 + ST_HARMONY_ADDED) };

struct st_generator {
    struct st_generator_options options; // without the sampling and the stop texts
    stint_sampling sampling;             // with biases of its own
    char *stops[STINT_MAX_STOPS];
    size_t n_generated; // tokens that were accepted
    size_t n_scored;    // tokens that were picked, with logprobs
    double logprobs;    // their sum
    size_t room;        // most tokens that the context has room for
    struct st_detokenizer detokenizer;
    bool speaks_harmony;                   // and its text is rewritten
    const struct st_renamed_mark *renamed; // marks that are read as others
    const char *title;                     // what the last of them still has; or NULL
    struct st_harmony harmony;             // of the answer
    struct st_constraint_state *constraint;
    struct st_reasoning reasoning; // of all text that was generated
    char text[ST_GENERATOR_TEXT];  // that was not told yet, behind what was told last
    size_t n_text, n_told, n_certain;
    bool ended;
    stint_stop_reason reason; // where ended
};

// STINT_E_ARG: the sampling, biases outside the vocabulary, stop texts. STINT_E_NOMEM, which cannot
// happen without biases and stop texts.
stint_status st_generator_open(struct st_generator *generator,
                               const struct st_generator_options *options);
void st_generator_close(struct st_generator *generator);

// Starts behind the tokens history [n_history], n_history > 0, of a context that holds n_context.
stint_status st_generator_begin(struct st_generator *generator,
                                struct st_generator_scratch *scratch, const int32_t *history,
                                size_t n_history, size_t n_context);

struct st_token {
    int32_t id;
    float logprob;                        // with logprobs
    stint_alternative top[STINT_MAX_TOP]; // [n_top] likeliest first
    uint32_t n_top;
};

// Picks the token that follows history [n_history], whose last n_generated ones were accepted, from
// logits [vocab], which it changes. False: no token may come; the answer has ended.
bool st_generator_next(struct st_generator *generator, struct st_generator_scratch *scratch,
                       float *logits, const int32_t *history, size_t n_history,
                       struct st_token *token);

// A guess at the token that st_generator_next() will pick `ahead` tokens after the next one, from
// logits [vocab] of a draft, which it changes; the last `ahead` tokens of history are guesses too.
// It takes the random number that the token itself will take, so the two are alike as often as the
// logits are. Constraints are left out. *margin: the token's logit minus the largest other one.
int32_t st_generator_guess(const struct st_generator *generator,
                           struct st_generator_scratch *scratch, float *logits,
                           const int32_t *history, size_t n_history, size_t ahead, float *margin);

// Of the tokens that were picked, the one that ended the answer included; 0 without logprobs.
static inline double st_generator_mean_logprob(const struct st_generator *generator) {
    return generator->n_scored ? generator->logprobs / (double)generator->n_scored : 0.0;
}

// Fills in the log-probability of token->id and the likeliest tokens, from logits [vocab].
void st_generator_score(const struct st_generator *generator, const float *logits,
                        struct st_token *token);

// What a token did to the answer. The texts are valid until the next call.
struct st_generated {
    bool counts;      // it is part of the answer: it did not end it
    const char *made; // [n_made] the text that it made
    size_t n_made;
    const char *text; // [n_bytes] what is certain to belong to the answer now, reasoning and its
    size_t n_bytes;   // marks included: whole characters
};

// Takes the token that was picked. False: the answer has ended.
bool st_generator_accept(struct st_generator *generator, const struct st_token *token,
                         struct st_generated *generated);

// The text that was held back and is part of the answer after all; returns its bytes. Valid until
// the generator is closed. The constraint is borrowed no longer.
size_t st_generator_finish(struct st_generator *generator, const char **text);

#endif

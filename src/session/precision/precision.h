// SPDX-License-Identifier: Apache-2.0
// How many bits the weights have at which step (PMPD, section 4.2): a step is a token to generate,
// precision never rises.
#ifndef ST_SESSION_PRECISION_H
#define ST_SESSION_PRECISION_H

#include "base/size.h"
#include "model/model.h"

// The precision that a package's INT8 weights stand for.
enum { ST_PRECISION_INT8 = 8 };

// The same number of bits at every step.
static inline stint_precision st_precision_uniform(uint32_t prefill, uint32_t bits) {
    return (stint_precision){
        .size = sizeof(stint_precision), .prefill = prefill, .n_steps = 1, .steps = {{bits, 0}}};
}

// STINT_E_ARG or E_UNSUPPORTED with the reason: a precision that the model has not, a first step
// that is not 0, steps or precisions out of order.
stint_status st_precision_check(const struct stint_model *model, const stint_precision *precision);

// The precision of decode step `step`, behind logits of that signal (signal.h), which counts only
// where the schedule has one.
unsigned st_precision_at(const stint_precision *precision, size_t step, float signal);

// The highest precision of the nested weights that is at most `most` and below `bits`; 0: none.
unsigned st_precision_below(const struct stint_model *model, unsigned most, unsigned bits);

// What a schedule runs: nested weights of some precisions (bit b for b bits), 0: none; those of
// them that only draft; whether the tokens after the prompt take INT8 ones too.
struct st_needs {
    unsigned precisions, drafts;
    bool int8_steps;
};

static inline struct st_needs st_needs_without_drafts(const struct st_needs *needs) {
    return (struct st_needs){.precisions = needs->precisions & ~needs->drafts,
                             .int8_steps = needs->int8_steps};
}

// Adds those of `precision`.
void st_precision_needs(const struct stint_model *model, const stint_precision *precision,
                        struct st_needs *needs);

// Adds the precisions at which those steps draft (draft/self.h), at most `most` bits.
void st_precision_needs_of_drafts(const struct stint_model *model, const stint_precision *precision,
                                  unsigned most, struct st_needs *needs);

// Rows of the head that steps which only draft take: the vocabulary's first 24,576, at least a
// quarter of it, at most a half. Tokenizers number tokens by how often merges make them, so most
// texts have few others (FR-Spec, Zhao et al. 2025, ranks them by frequency).
static inline size_t st_draft_head_rows(const struct st_config *config) {
    size_t vocab = config->vocab, rows = st_min(vocab / 2, st_max(vocab / 4, 24 << 10));
    return st_min(vocab, st_round_up(rows, ST_NESTED_PANEL));
}

// The share of a step's bytes that the other rows are.
double st_draft_head_saves(const struct stint_model *model, unsigned bits);

#endif

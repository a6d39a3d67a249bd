// SPDX-License-Identifier: Apache-2.0
// How many bits the weights have at which step (PMPD, section 4.2): a step is a token to generate,
// precision never rises.
#ifndef ST_SESSION_PRECISION_H
#define ST_SESSION_PRECISION_H

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

// What a schedule runs: nested weights of some precisions (bit b for b bits), 0: none; whether the
// tokens after the prompt take INT8 ones too.
struct st_needs {
    unsigned precisions;
    bool int8_steps;
};

// Adds those of `precision`.
void st_precision_needs(const struct stint_model *model, const stint_precision *precision,
                        struct st_needs *needs);

// Adds the precisions at which those steps draft (draft/self.h), at most `most` bits.
void st_precision_needs_of_drafts(const struct stint_model *model, const stint_precision *precision,
                                  unsigned most, struct st_needs *needs);

#endif

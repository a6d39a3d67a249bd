// SPDX-License-Identifier: Apache-2.0
// The next token from logits: pure functions on arrays.
#ifndef ST_GENERATE_SAMPLE_H
#define ST_GENERATE_SAMPLE_H

#include "kernels/elementwise.h"
#include "stint.h"
#include "tokenizer/tokenizer.h"

#include <assert.h>

// A token of the candidate list while sampling.
struct st_candidate {
    float p;
    int32_t id;
};

struct st_sampler {
    const struct st_elementwise *elementwise;
    struct st_candidate *candidates; // scratch [vocab]
    size_t vocab;
    const int32_t *ids; // [n_ids] the text so far
    size_t n_ids;
    size_t n_generated;                      // of them, the last ones
    const struct stint_tokenizer *tokenizer; // for the tokens that end a repetition; NULL: none do
};

// The scratch of a sampler in floats [2, vocab], whose content is lost.
static inline struct st_candidate *st_sampler_candidates(float *floats) {
    static_assert(sizeof(struct st_candidate) == 2 * sizeof(float), "a candidate is two floats");
    return (struct st_candidate *)(void *)floats;
}

// Picks the next token from logits [vocab], which it may change. `draw` in [0, 1). At least one
// logit must be above -infinity.
int32_t st_sample(const struct st_sampler *sampler, const stint_sampling *sampling, double draw,
                  float *logits);

#endif

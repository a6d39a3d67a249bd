// SPDX-License-Identifier: Apache-2.0
// What a model predicts of a text, and how far that is from what another one does.
#ifndef ST_PREPARE_PREDICTIONS_H
#define ST_PREPARE_PREDICTIONS_H

#include <stddef.h>
#include <stdint.h>

enum { ST_PREDICTED = 32 };

// The most likely tokens at one position, in descending order.
struct st_predicted {
    int32_t id[ST_PREDICTED];
    float log_p[ST_PREDICTED];
};

// A model's predictions of the next token at each position.
struct st_predictions {
    struct st_predicted *at; // [n]; capacity: the number of ids
    size_t n;
    double loss;                        // sum of -ln p of the tokens that follow
    const struct st_predictions *exact; // the reference; or NULL
    double divergence; // sum of Kullback-Leibler divergences from the reference, over its most
                       // likely tokens and all others together
    size_t n_same;     // positions whose most likely token is the same
};

// At most 1e300: JSON has no infinity.
double st_predictions_perplexity(const struct st_predictions *predictions);

// One more position: `wanted` is the token that follows.
void st_predictions_add(struct st_predictions *predictions, const float *logits, size_t vocab,
                        int32_t wanted);

#endif

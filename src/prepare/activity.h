// SPDX-License-Identifier: Apache-2.0
// Records which neurons of a layer are active for which tokens of the calibration text
// (PowerInfer-2, section 5).
#ifndef ST_PREPARE_ACTIVITY_H
#define ST_PREPARE_ACTIVITY_H

#include "base/arena.h"
#include "model/weights_neurons.h"

struct st_activity {
    size_t hidden, ffn, max; // max: capacity in tokens
    size_t n;                // tokens seen
    float *inputs;           // [max, hidden] of the block
    uint64_t *active;        // [max, words] a bit per neuron
    size_t words;
    float *rates;   // [ST_NEURON_RATES, ffn] by neuron
    int32_t *order; // [ffn] the most active ones first
};

// Runs twice on `arena` (base/arena.h).
void st_activity_lay_out(struct st_activity *activity, size_t hidden, size_t ffn, size_t max,
                         struct st_arena *arena);
static inline bool st_activity_has(const struct st_activity *a, size_t token, size_t neuron) {
    return a->active[token * a->words + neuron / 64] >> neuron % 64 & 1;
}
// Discards what was recorded of the layer before.
void st_activity_clear(struct st_activity *activity);
// The block's inputs must be passed before the inputs of its second linear for the same tokens.
// Tokens beyond `max` are ignored.
void st_activity_see_inputs(struct st_activity *activity, const float *x, size_t n);
void st_activity_see_neurons(struct st_activity *activity, const float *middle, size_t n);
// Computes the rates and the order. The tokens of a batch are far apart in the text, like tokens of
// different sequences.
void st_activity_count(struct st_activity *activity);

#endif

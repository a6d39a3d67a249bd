// SPDX-License-Identifier: Apache-2.0
// INT8 weights with only 16 different values in each group of ST_NEURON_K, so that 4 bits for each
// weight and a byte for each group store them (kernels/neuron.h). INT8 kernels use them unchanged.
#ifndef ST_PREPARE_LEVELS_H
#define ST_PREPARE_LEVELS_H

#include "kernels/neuron.h"

struct st_levels {
    uint8_t code[ST_NEURON_SCALES][256];   // of the nearest level, indexed by the weight's byte
    uint16_t error[ST_NEURON_SCALES][256]; // its distance squared
};

void st_levels_fill(struct st_levels *levels);

// Replaces n weights with distance `step` by the levels of the scale with the least squared error.
// pre: n <= ST_NEURON_K.
void st_levels_round(const struct st_levels *levels, int8_t *w, size_t n, size_t step);

// Stores rounded weights w [n] as a row or column of k, a multiple of ST_NEURON_K.
void st_levels_store(const struct st_levels *levels, const int8_t *w, size_t n, size_t k,
                     uint8_t *row);

#endif

// SPDX-License-Identifier: Apache-2.0
// Bit allocation: how many bits the codes of each linear have at each precision, so that the loss
// is small while the mean over all weights stays within a budget. Losses are taken to add up.
#ifndef ST_PREPARE_ALLOCATE_H
#define ST_PREPARE_ALLOCATE_H

#include "base/status.h"
#include "kernels/nested.h"

struct st_allocation {
    uint64_t n_weights;                  // of the linear
    double loss[ST_NESTED_HIGHEST + 1];  // with codes of [b] bits
    uint8_t bits[ST_NESTED_HIGHEST + 1]; // out: at precision [b] of a run
};

// How many bits a weight may have on average at a precision, in a model that needs them.
double st_allocation_budget(unsigned precision);
// The most bits that a linear gets if `high` is the highest precision.
unsigned st_allocation_most(unsigned high);

// Sets `bits` of all linears for the precisions [low, high], ascending. Beginning with the lowest
// number of bits, the next bit goes where it lowers the loss most for the weights that get it; the
// linear with most weights gets what leaves the least loss in all.
// STINT_E_NOMEM.
stint_status st_allocate_bits(struct st_allocation *linears, size_t n, unsigned low, unsigned high);

// Bits of a weight at a precision, on average.
double st_allocation_mean(const struct st_allocation *linears, size_t n, unsigned precision);

#endif

// SPDX-License-Identifier: Apache-2.0
// The sampling that a model's maker recommends.
#ifndef ST_GENERATE_RECOMMENDED_H
#define ST_GENERATE_RECOMMENDED_H

#include "format/checkpoint.h"
#include "stint.h"

// As stint_model_sampling(), of a checkpoint.
uint64_t st_sampling_recommended(const struct st_checkpoint *checkpoint, stint_sampling *sampling);

#endif

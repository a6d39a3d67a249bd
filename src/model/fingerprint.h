// SPDX-License-Identifier: Apache-2.0
#ifndef ST_MODEL_FINGERPRINT_H
#define ST_MODEL_FINGERPRINT_H

#include "model/model.h"

// Tells models from each other. Of a package it is the hash of its table, which holds the hashes of
// all sections. Of another checkpoint it covers the configuration, the name, type and shape of each
// tensor, and samples of its data, evenly spaced: reading all would take as long as a prompt. So
// two models that differ in few weights may be taken for one; training and merging change all.
uint64_t st_model_hash(const struct stint_model *model);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef ST_MODEL_FINGERPRINT_H
#define ST_MODEL_FINGERPRINT_H

#include "model/model.h"

// A hash of the whole model, which tells it from any that differs in one bit. Of a package it is
// the hash of its table, which holds the hashes of all sections. Of another checkpoint it covers
// config.json and all bytes of its files, which are read once, when it is first asked for: as much
// as computing a token reads. Of random weights it covers the tensors.
// STINT_E_IO where a file cannot be read, or was written or cut since it was opened; E_NOMEM.
stint_status st_model_hash(const struct stint_model *model, uint64_t *hash);

#endif

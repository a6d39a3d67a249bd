// SPDX-License-Identifier: Apache-2.0
// The token ids on which a model is calibrated.
#ifndef ST_PREPARE_CALIBRATION_TOKENS_H
#define ST_PREPARE_CALIBRATION_TOKENS_H

#include "model/model.h"

enum {
    ST_CALIBRATION_SEQUENCE = 512, // tokens of a sequence
    ST_CALIBRATION_TOKENS = 8192,  // default
};

// The length of a sequence for this model.
size_t st_calibration_sequence(const struct stint_model *model);

// Either a text or ids, or neither.
struct st_calibration_input {
    const char *text;
    size_t text_bytes;
    const int32_t *ids;
    size_t n_ids;
    uint32_t max; // tokens; 0: ST_CALIBRATION_TOKENS
};

// Fills *ids with at least one id. Given ids are taken unchanged. A text is cut into sequences that
// begin as a prompt of this model does. Without tokenizer and ids, random ids are used and a
// warning is logged. STINT_E_ARG for an empty text or an id beyond the vocabulary.
stint_status st_calibration_tokens(const struct stint_model *model,
                                   const struct st_calibration_input *input, struct st_ids *ids);

#endif

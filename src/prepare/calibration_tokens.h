// SPDX-License-Identifier: Apache-2.0
// Which token ids a model is calibrated on.
#ifndef ST_PREPARE_CALIBRATION_TOKENS_H
#define ST_PREPARE_CALIBRATION_TOKENS_H

#include "model/model.h"

enum {
    ST_CALIBRATION_SEQUENCE = 512, // tokens that see each other
    ST_CALIBRATION_TOKENS = 8192,  // unless more are asked for
};

// Tokens of a sequence of this model.
size_t st_calibration_sequence(const struct stint_model *model);

// One of text and ids, or neither.
struct st_calibration_input {
    const char *text;
    size_t text_bytes;
    const int32_t *ids;
    size_t n_ids;
    uint32_t max; // tokens; 0: ST_CALIBRATION_TOKENS
};

// Fills *ids, at least one: the given ones as they are; of a text, sequences that each begin as a
// prompt of this model does. Where there is no tokenizer and no ids, random ones and a warning.
// STINT_E_ARG for an empty text or an id beyond the vocabulary.
stint_status st_calibration_tokens(const struct stint_model *model,
                                   const struct st_calibration_input *input, struct st_ids *ids);

#endif

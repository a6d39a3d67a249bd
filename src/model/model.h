// SPDX-License-Identifier: Apache-2.0
// A loaded model: the checkpoint with its mapped files, the checked config, the bound weights and
// the tokenizer. Immutable once it is open, so any number of sessions and threads share it.
#ifndef ST_MODEL_MODEL_H
#define ST_MODEL_MODEL_H

#include "chat/chat.h"
#include "model/config.h"
#include "model/file_pieces.h"
#include "model/pooling.h"
#include "model/preset.h"
#include "model/preset_int8.h"
#include "model/weights.h"
#include "model/weights_int8.h"
#include "model/weights_nested.h"
#include "model/weights_neurons.h"

#include <stdatomic.h>

struct stint_model {
    struct st_checkpoint checkpoint;
    struct st_config config;
    struct st_arena arena;  // norms, biases, the layer table
    struct st_arena pinned; // of a model whose weights are read on demand: copies of float linears
    struct st_file_pieces pieces; // the same, in `pinned`: what is read
    struct st_weights weights;
    struct st_weights_int8 int8;       // layers NULL: a float model
    struct st_weights_neurons neurons; // layers NULL: none
    bool fast; // steps multiply its quantized blocks in integers, prompts may be rounded
    struct st_nested_range nested;            // precisions of its nested weights
    struct stint_model *nested_from;          // the package that lends them; or NULL: its own
    struct st_preset_weights *preset_weights; // ST_SOURCE_PRESET only
    struct st_preset_int8 *preset_int8;       // the same, where it computes in INT8
    uint64_t held_bytes; // memory that opening took, of a model whose weights are read on demand
    struct stint_tokenizer *tokenizer; // NULL: ids only
    struct st_chat *chat;
    struct st_pooling pooling; // of embeddings
    atomic_ullong hash;        // st_model_hash(); 0: not known yet
};

// True if its INT8 weights are made of nested codes (device/weight_set.h).
static inline bool st_model_has_sets(const struct stint_model *model) {
    return model->int8.layers && model->int8.head.weight.set;
}

// True if `id` ends generation: EOS by config, tokenizer or chat format.
bool st_model_stops(const struct stint_model *model, int32_t id);

#endif

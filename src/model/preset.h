// SPDX-License-Identifier: Apache-2.0
// Model presets: random weights of a known model's shape. What a device can do is measured without
// downloading anything.
#ifndef ST_MODEL_PRESET_H
#define ST_MODEL_PRESET_H

#include "model/weights.h"

struct st_preset {
    const char *name;
    const char *config; // what the model's config.json says, as far as it matters
    // Tensors with this part in their names are of this type (MXFP4 or Q8_0), the others BF16.
    const char *part; // NULL: none
    enum st_dtype dtype;
    bool fast; // these are linears, so steps run over blocks unless another way is asked for
};

// Ends the name of experts that are made as rows (model/weights_ffn.c).
#define ST_MADE_BLOCKS "_blocks"

extern const struct st_preset st_presets[]; // ends with a NULL name

// STINT_E_ARG that lists the known names.
stint_status st_preset_find(const char *name, const struct st_preset **preset);

// Its config, without weights. *keep is *returned*: json_decref() it when the config is done with.
stint_status st_preset_config(const char *name, struct st_config *config, json_t **keep);

// The generator behind a weight source: tensors, handed out on demand and kept until close.
// With `bytes` 0 it only counts (the tensors have no data): open it again with what it counted.
struct st_preset_weights;
stint_status st_preset_weights_open(const struct st_preset *preset, struct st_tensors *tensors,
                                    size_t bytes, struct st_preset_weights **weights);
size_t st_preset_weights_bytes(const struct st_preset_weights *weights);
void st_preset_weights_close(struct st_preset_weights *weights); // accepts NULL
// For st_weight_source.make; context is the struct.
stint_status st_preset_weights_make(void *context, const char *name, uint32_t n_dims,
                                    const uint64_t *dims, struct st_tensor *tensor);
// Fills everything made so far.
void st_preset_weights_fill(struct st_preset_weights *weights, stint_progress_fn *progress,
                            void *context);

#endif

// SPDX-License-Identifier: Apache-2.0
// What binds tensors to their places (model/weights.h): lookups by role, with their shapes checked.
// Everything runs twice (base/arena.h): pointers into the arena are NULL while measuring.
#ifndef ST_MODEL_BINDER_H
#define ST_MODEL_BINDER_H

#include "model/weights.h"

enum { ST_BIND_NAME_BYTES = 192 };

// Hugging Face files differ in what stands before the names of arch.c: nothing, a multimodal
// wrapper's name, or that in place of "model.".
struct st_name_prefix {
    const char *text;
    bool replaces_model;
};

struct st_binder {
    const struct st_tensor_source *source;
    struct st_config *config;
    struct st_arena *arena;
    const struct st_name_prefix *prefix;
    const uint16_t *at; // the numbers that the file gives the layers; NULL: as they are
};

// The name of a pattern of arch.c with its numbers i and j, to name [ST_BIND_NAME_BYTES].
void st_bind_name(const struct st_binder *b, const char *pattern, const char *suffix, uint32_t i,
                  uint32_t j, char *name);
// Whether this family's files have tensors of that role.
bool st_bind_has_role(const struct st_binder *b, enum st_role role);
// Finds (or makes) a tensor and checks its shape; *found is false where it is absent and that is
// allowed.
stint_status st_bind_find(const struct st_binder *b, enum st_role role, const char *suffix,
                          uint32_t i, uint32_t j, uint32_t n_dims, const uint64_t *dims,
                          bool required, struct st_tensor *tensor, bool *found);
// A 1-D tensor as floats in the arena, plus `offset`. NULL where absent.
stint_status st_bind_vector(const struct st_binder *b, enum st_role role, const char *suffix,
                            uint32_t i, uint32_t j, uint64_t n, bool required, float offset,
                            const float **out);
// Rows [row0, row0 + n_out) of a tensor as a linear without a bias.
void st_bind_rows(const struct st_tensor *t, uint64_t row0, uint32_t n_out, uint32_t n_in,
                  struct st_linear_weight *linear);
// Whether an INT8 model has the linears of this role in a form of its own.
bool st_bind_is_int8(const struct st_binder *b, enum st_role role);
stint_status st_bind_linear_at(const struct st_binder *b, enum st_role role, uint32_t i, uint32_t j,
                               uint32_t n_out, uint32_t n_in, bool required, bool bias,
                               struct st_linear_weight *linear);
stint_status st_bind_linear(const struct st_binder *b, enum st_role role, uint32_t layer,
                            uint32_t n_out, uint32_t n_in, bool bias,
                            struct st_linear_weight *linear);
// Several linears that share one input and are stored one below the other in one tensor, if it is
// there.
stint_status st_bind_fused(const struct st_binder *b, enum st_role role, uint32_t layer, bool bias,
                           struct st_linear_weight *const *parts, const uint32_t *n_out,
                           size_t n_parts, uint32_t n_in, bool *found);

// weights_state.c: a short convolution, a gated delta net, Mamba-2.
stint_status st_bind_conv(const struct st_binder *b, uint32_t i, struct st_layer *layer);
stint_status st_bind_delta(const struct st_binder *b, uint32_t i, struct st_layer *layer);
stint_status st_bind_mamba(const struct st_binder *b, uint32_t i, struct st_layer *layer);
stint_status st_bind_norm(const struct st_binder *b, enum st_role role, uint32_t i, uint32_t n,
                          bool required, struct st_norm_weight *norm);

// weights_layers.c: tokens' inputs of all layers; of one layer, with the scale of its result.
stint_status st_bind_layer_inputs(const struct st_binder *b, struct st_weights *w);
stint_status st_bind_layer_input(const struct st_binder *b, uint32_t i, struct st_layer *layer);

// weights_latent.c: latent attention of a layer.
stint_status st_bind_latent(const struct st_binder *b, uint32_t i, struct st_layer *layer);
// Norms and mixer and feed-forward block of a layer.
stint_status st_bind_layer(const struct st_binder *b, uint32_t i, struct st_layer *layer);
// weights_ahead.c: whether the file has a layer that predicts a further token; and it, unless it is
// of another form: the model runs without.
bool st_bind_has_ahead(const struct st_binder *b);
stint_status st_bind_ahead(const struct st_binder *b, struct st_layer *layer,
                           struct st_ahead_weight *ahead);

// weights_ffn.c: the feed-forward block of a layer, or its mixture.
stint_status st_bind_ffn(const struct st_binder *b, uint32_t i, struct st_layer *layer);

#endif

// SPDX-License-Identifier: Apache-2.0
// Biases of keys, kept out of a quantized KV cache. Those of Qwen2 are a hundred times as large as
// the rest of a key and would set the scales of its blocks; and they are known. What the cache
// lacks is added to the scores: with R(p) the rotation of position p (model/rope.h), q . R(p) b is
// a sum of cosines and sines of p with factors that depend on q and b alone.
#ifndef ST_SESSION_KV_KEY_BIAS_H
#define ST_SESSION_KV_KEY_BIAS_H

#include "base/arena.h"
#include "kernels/kv_types.h"
#include "model/model.h"

struct st_key_bias {
    // [positions, rope_dims] cosines, then sines; 1: of layers with a sliding window; NULL: none of
    // these layers leaves its bias out.
    float *rotations[2];
    size_t reached; // positions that are written
};

// Elements of the rotations of a position; 0: no layer leaves its bias out. None does where a norm
// follows the bias, or where rotations change as the text grows.
size_t st_key_bias_dims(const struct stint_model *model, enum st_kv_type type);
// Room for all positions. Runs on a measuring arena too (base/arena.h).
void st_key_bias_lay_out(struct st_key_bias *k, const struct stint_model *model,
                         enum st_kv_type type, size_t positions, struct st_arena *arena);
// Writes the rotations of positions [0, n). Before the threads that read them run.
void st_key_bias_reach(struct st_key_bias *k, const struct stint_model *model, size_t n);

// [n_kv_heads, head_dim] of a layer that leaves it out; or NULL.
const float *st_key_bias_of(const struct st_key_bias *k, const struct stint_model *model,
                            uint32_t layer);
// [positions, rope_dims] that such a layer's scores are made up with; NULL: it needs none.
const float *st_key_bias_rotations(const struct st_key_bias *k, const struct stint_model *model,
                                   uint32_t layer);
// For a rotated query and a head's bias, what to multiply a position's rotations with: to
// [rope_dims].
void st_key_bias_factors(const struct st_config *config, size_t rope_dims, const float *query,
                         const float *bias, float *to);

#endif

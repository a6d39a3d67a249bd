// SPDX-License-Identifier: Apache-2.0
// One batch of tokens through the model.
#ifndef ST_SESSION_PASS_H
#define ST_SESSION_PASS_H

#include "session/session.h"

#include <math.h>

// Embeddings of the ids into x [n, hidden], rotations of the batch's positions, and the inputs of
// `n_layers` layers from run->layer on.
stint_status st_pass_embed(const struct st_run *run, const int32_t *ids, uint32_t n_layers);
void st_pass_rotations(const struct st_run *run); // alone
// The inputs of layers [first, first + n_layers) of the ids, once x has their embedding; and what a
// layer does with its own at its end, and with the scale of its result (layer_input.c).
stint_status st_layer_inputs_make(const struct st_run *run, const int32_t *ids, uint32_t first,
                                  uint32_t n_layers);
stint_status st_layer_input_add(const struct st_run *run);
// Of models whose tokens have several hidden states (streams.c): what makes the others of the
// embedding, what predicts them before a layer and corrects them behind it, what adds y [n, hidden]
// to all but the first, and what makes one of them all in x.
stint_status st_streams_begin(const struct st_run *run);
stint_status st_streams_predict(const struct st_run *run);
stint_status st_streams_correct(const struct st_run *run);
void st_streams_add(const struct st_run *run, const float *y);
stint_status st_streams_end(const struct st_run *run);
// The same: a residual sum of low rank, of the normed input; and its part of x.
stint_status st_laurel_make(const struct st_run *run);
void st_laurel_add(const struct st_run *run);
// One subgraph of one layer. STINT_E_CANCELED.
stint_status st_pass_subgraph(const struct st_run *run, enum st_subgraph_kind kind);
// The shadow of a linear, where run->shadows_apart: of ST_INT8_UP before the feed-forward block, of
// the others after their subgraph, with what follows the linear there.
stint_status st_pass_shadow(const struct st_run *run, enum st_int8_role role);
stint_status st_pass_layer(const struct st_run *run);
// Runs one batch through all layers; x holds its last hidden states, without those of tokens that
// are unread. STINT_E_CANCELED.
stint_status st_pass_forward(const struct st_run *run, const int32_t *ids);
// Whether a session's prompts can have unread tokens.
bool st_pass_leaves_unread(const struct stint_session *session);
// What the output head meets, [n, embed], of x [n, hidden]: valid until the next call.
stint_status st_pass_head_input(const struct st_run *run, const float *x, size_t n,
                                const float **input);
// logits [n, vocab] of such inputs. STINT_E_FORMAT if they are not finite.
stint_status st_pass_head(const struct st_run *run, const float *input, size_t n, float *logits);
// What follows the head's linear. STINT_E_FORMAT if they are not finite.
stint_status st_pass_finish_logits(const struct st_run *run, size_t n, float *logits);
// logits [n, vocab] of rows first..first + n - 1 of x. STINT_E_FORMAT if they are not finite.
stint_status st_pass_logits(const struct st_run *run, size_t first, size_t n, float *logits);
// Norm of every row of x [n, norm->n] into y, which may be x (norm.c).
void st_pass_norm(const struct st_run *run, const struct st_norm_weight *norm, const float *x,
                  size_t n, float *y);

// ---- kv/

// Norms and rotates k of the batch, and appends it and v to the cache.
stint_status st_kv_append(const struct st_run *run);
// Norms and rotates q; q and the cache -> attended.
void st_kv_attend(const struct st_run *run);
// The same of rotated queries and a prompt that is in the cache (kv/prompt_attention.c), or the
// tokens of a step (kv/step_attention.c).
void st_kv_attend_prompt(const struct st_run *run);
void st_kv_attend_step(const struct st_run *run);
// Where queries come with gates of what attention gives: takes the two apart, and applies the gates
// (kv/attention_gate.c).
void st_gate_take(const struct st_run *run);
void st_gate_apply(const struct st_run *run);
// The same of queries that are rotated.
void st_kv_attend_rotated(const struct st_run *run);
// The same of latent attention (kv/latent.c).
stint_status st_latent_append(const struct st_run *run);
stint_status st_latent_mix(const struct st_run *run);
// The same of a layer that is a short convolution (kv/short_conv.c).
stint_status st_conv_append(const struct st_run *run);
void st_conv_mix(const struct st_run *run);
// The inputs of a convolution for the batch's t-th token, from the batch's own `inputs` [n, width]
// and from the state: the last `conv_length` rows, the oldest first; NULL before the beginning.
void st_conv_rows(const struct st_run *run, size_t t, const float *inputs, size_t width,
                  const float **rows);
// log(1 + e^x)
static inline float st_softplus(float x) {
    return x > 20.0f ? x : log1pf(expf(x));
}
// A token's inputs in buffers->raw through a convolution and an activation, to buffers->q.
void st_conv_activate(const struct st_run *run, size_t t);
// The same of a gated delta net (kv/delta.c), and of Mamba-2 (kv/mamba.c).
stint_status st_delta_append(const struct st_run *run);
void st_delta_mix(const struct st_run *run);
stint_status st_mamba_append(const struct st_run *run);
void st_mamba_mix(const struct st_run *run);

#endif

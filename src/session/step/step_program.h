// SPDX-License-Identifier: Apache-2.0
// A step as a program of a device: where everything lies in its buffers, and the list of
// operations.
#ifndef ST_SESSION_STEP_STEP_PROGRAM_H
#define ST_SESSION_STEP_STEP_PROGRAM_H

#include "device/program.h"

struct stint_session;

// Bytes from the begin of the device's memory. The host writes what lies before in_end once, and
// from in_begin on before each step: place, embedding, rotations (1: of sliding windows). It reads
// from out_begin on.
struct st_step_layer {
    size_t norm[2], qk_norm[2], bias[3]; // of the layer's halves, of q and k, of qkv
    size_t rows;                         // that the step adds to the cache
};

struct st_step_layout {
    struct st_step_layer *layers; // [n_layers]
    size_t final_norm;
    size_t in_begin, place, x, cosine[2], sine[2], in_end;
    // Nobody but the device sees x as it grows, a linear's input, and what there is between.
    size_t sum[2], input, q, k, v, attended, projected, gate, up, scores;
    size_t out_begin, out_x, logits, out_end;
    bool head; // the device has it
};

// Whether a program can be the steps of this session, and its device has all linears of layers.
bool st_step_is_plain(const struct stint_session *s);
// Sets everything but layers' memory, which is there.
void st_step_lay_out(const struct stint_session *s, struct st_step_layout *layout);
// Writes norms and biases, [in_end].
void st_step_fill(const struct stint_session *s, const struct st_step_layout *layout,
                  unsigned char *memory);
// Sets what memory and cache, which are set, do not say. The operations are the caller's to free.
// STINT_E_NOMEM.
stint_status st_step_options(const struct stint_session *s, const struct st_step_layout *layout,
                             unsigned bits, struct st_program_options *options);

#endif

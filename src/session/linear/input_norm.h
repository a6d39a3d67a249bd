// SPDX-License-Identifier: Apache-2.0
// Norms at the inputs of qkv and of feed-forward blocks on devices that can (caps.row_norms): a
// device normalises the hidden states as it quantizes them. It holds the weights of these norms.
#ifndef ST_SESSION_INPUT_NORM_H
#define ST_SESSION_INPUT_NORM_H

#include "session/session.h"

// Gives the device the weights, where it is to have them (npu->norms), and a limit of memory leaves
// room. STINT_E_NOMEM, E_DEVICE.
stint_status st_input_norms_open(const struct stint_session *s, struct st_npu *npu);
// The weights of this layer's norm before qkv or a feed-forward block. No buffer: the host computes
// it.
struct st_slice st_input_norm_slice(const struct st_run *run, const struct st_npu *npu,
                                    enum st_int8_role role);

// The norm at this input is left to the unit's op (op->prepare_normed): an RMSNorm whose result
// nothing else in the layer reads.
bool st_input_norm_is_left(const struct st_run *run, enum st_int8_role role);

#endif

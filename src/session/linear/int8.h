// SPDX-License-Identifier: Apache-2.0
// What the ops over INT8 weights share.
#ifndef ST_SESSION_LINEAR_INT8_H
#define ST_SESSION_LINEAR_INT8_H

#include "session/linear/op.h"

// A chunk's quantized buffers; returns their bytes.
size_t st_int8_lay_out(const struct stint_session *s, struct st_chunk_buffers *buffers,
                       struct st_arena *arena);

// Gives up an input that is quantized for a graph that will not run.
void st_int8_abandon(struct st_chunk_buffers *buffers);

static inline const struct st_linear_op *st_run_linear_op(const struct st_run *r,
                                                          enum st_int8_role role, uint32_t expert) {
    return st_int8_linear_op(&r->s->model->int8, role, r->layer, expert);
}

// Shadow execution of a feed-forward block whose input has been quantized.
st_op_fn st_int8_before_ffn, st_int8_finish_ffn;

#endif

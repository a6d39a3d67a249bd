// SPDX-License-Identifier: Apache-2.0
// INT8 linears on a device: the device with its graphs, and what the ops over it share.
#ifndef ST_SESSION_LINEAR_INT8_H
#define ST_SESSION_LINEAR_INT8_H

#include "session/linear/op.h"
#include "session/weights/source.h"

// ---- npu.c

// The widths of quantized rows and room for the graphs; a chunk's quantized buffers.
void st_npu_lay_out(struct stint_session *s, struct st_arena *arena);
void st_npu_lay_out_buffers(const struct stint_session *s, struct st_chunk_buffers *buffers,
                            struct st_arena *arena);
// Opens the group's device (NULL: the best there is) and compiles every static subgraph for it.
stint_status st_npu_open(struct stint_session *s, const char *device,
                         const struct st_worker_group *group);
void st_npu_close(struct st_npu *npu);
// The graph that begins with the linear of this role.
struct st_graph *st_npu_graph(const struct st_run *run, enum st_int8_role role, uint32_t expert);

static inline const struct st_stage *st_run_stage(const struct st_run *r, enum st_int8_role role,
                                                  uint32_t expert) {
    return st_int8_stage(&r->s->model->int8, role, r->layer, expert);
}

// ---- int8.c

// Runs a graph with its weights where they are: of `id` and the linear that follows it, where it
// has two stages.
stint_status st_int8_run_graph(const struct st_run *run, struct st_linear_id id, uint32_t n_stages,
                               struct st_graph *graph, struct st_graph_io *io);
// Steps that other ops over the device have in common with these.
st_op_fn st_int8_finish, st_int8_before_ffn, st_int8_finish_ffn;
// Notes the time since *begun as that of shadow execution, also in the timeline, and begins anew.
void st_int8_count_shadow(const struct st_run *run, uint64_t *begun);

#endif

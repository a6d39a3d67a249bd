// SPDX-License-Identifier: Apache-2.0
// The device that acts as the NPU, and the static subgraphs that are compiled for it.
#include "session/linear/int8.h"

#include "base/clock.h"
#include "base/size.h"

#include <string.h>

enum { FIRST_FFN = 2 }; // a layer's graphs: qkv, o, then its feed-forward blocks

static size_t graphs_per_layer(const struct st_config *c) {
    return FIRST_FFN + st_max(1, c->n_experts);
}

struct st_graph *st_npu_graph(const struct st_run *r, enum st_int8_role role, uint32_t expert) {
    const struct st_npu *npu = r->group->npu;
    size_t first = r->layer * graphs_per_layer(&r->s->model->config);
    if (role == ST_INT8_HEAD) return npu->graphs[npu->n_graphs - 1];
    return npu->graphs[first + (role == ST_INT8_UP ? FIRST_FFN + expert : role)];
}

void st_npu_lay_out(struct stint_session *s, struct st_arena *arena) {
    const struct st_config *c = &s->model->config;
    struct st_npu *npu = &s->npu;
    npu->in_row = st_device_row(st_max(c->hidden, c->embed));
    npu->attended_row = st_device_row((size_t)c->n_heads * c->head_dim);
    npu->middle_row = st_device_row(c->ffn);
    npu->n_graphs = graphs_per_layer(c) * c->n_layers + 1;
    npu->graphs = ST_TAKE(arena, struct st_graph *, npu->n_graphs);
}

void st_npu_lay_out_buffers(const struct stint_session *s, struct st_chunk_buffers *buffers,
                            struct st_arena *arena) {
    buffers->in8 = ST_TAKE(arena, uint8_t, s->chunk_len * s->npu.in_row);
    buffers->attended8 = ST_TAKE(arena, uint8_t, s->chunk_len * s->npu.attended_row);
    buffers->middle8 = ST_TAKE(arena, uint8_t, s->chunk_len * s->npu.middle_row);
}

static stint_status compile_one(const struct stint_session *s, const struct st_npu *npu,
                                const struct st_stage *first, const struct st_stage *second,
                                struct st_graph **graph) {
    struct st_graph_desc desc = {.stages = {*first}, .n_stages = second ? 2 : 1};
    if (second) desc.stages[1] = *second;
    return npu->type->compile(npu->device, &desc, s->chunk_len, graph);
}

static stint_status compile_all(const struct stint_session *s, const struct st_npu *npu) {
    const struct st_config *c = &s->model->config;
    const struct st_weights_int8 *w = &s->model->int8;
    struct st_graph **graph = npu->graphs;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const struct st_layer_int8 *l = &w->layers[i];
        ST_TRY(compile_one(s, npu, &l->qkv, NULL, graph++));
        ST_TRY(compile_one(s, npu, &l->o, NULL, graph++));
        for (uint32_t e = 0; e < st_max(1, c->n_experts); e++)
            ST_TRY(compile_one(s, npu, &l->ffn[e].up, &l->ffn[e].down, graph++));
    }
    return compile_one(s, npu, &w->head, NULL, graph);
}

stint_status st_npu_open(struct stint_session *s, const char *device,
                         const struct st_worker_group *group) {
    struct st_npu *npu = group->npu;
    ST_TRY(st_device_find(device, &npu->type));
    ST_TRY(npu->type->open(npu->type, group->pool, &npu->device));
    uint64_t begun = st_now_ns();
    ST_TRY(compile_all(s, npu));
    npu->compile_seconds = (double)(st_now_ns() - begun) * 1e-9;
    return STINT_OK;
}

void st_npu_close(struct st_npu *npu) {
    if (!npu->device) return;
    for (size_t i = 0; i < npu->n_graphs; i++)
        if (npu->graphs[i]) npu->type->free_graph(npu->graphs[i]);
    npu->type->close(npu->device);
    npu->device = NULL;
}

stint_status stint_session_graphs(const stint_session *session, stint_graph_info *info) {
    if (!session || !info || info->size == 0)
        return st_fail(STINT_E_ARG, "info->size must be set to sizeof(stint_graph_info)");
    const struct st_npu *npu = &session->npu;
    stint_graph_info out = {.size = info->size};
    if (npu->device) {
        out.n_graphs = (uint32_t)npu->n_graphs;
        out.compile_seconds = npu->compile_seconds;
        for (size_t i = 0; i < npu->n_graphs; i++)
            out.bytes += npu->type->graph_bytes(npu->graphs[i]);
        out.bytes += session->chunk_len * (npu->in_row + npu->attended_row + npu->middle_row);
    }
    memcpy(info, &out, st_min(info->size, sizeof out));
    return STINT_OK;
}

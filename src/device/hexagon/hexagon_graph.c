// SPDX-License-Identifier: Apache-2.0
// Graphs: their description in the shared memory.
#include "device/hexagon/hexagon.h"
#include "device/hexagon/tiles.h"

#include <stdlib.h>
#include <string.h>

bool st_hexagon_supports(const struct st_device *device,
                         const struct st_device_subgraph *subgraph) {
    const struct hexagon_device *d = (const struct hexagon_device *)device;
    struct tile_plan plan;
    if (subgraph->in_parts) return false;
    for (uint32_t i = 0; i < subgraph->n_linear_ops; i++)
        if (!tile_plan_make(subgraph->linear_ops[i].weight.n_in, TILE_VTCM_BYTES, &plan))
            return false;
    if (subgraph->linear_ops[1].norm && !d->queue->host.norm_lanes) return false;
    return subgraph->n_linear_ops == 1 || d->exact_acts ||
           st_act_is_exact(subgraph->linear_ops[0].act);
}

stint_status st_hexagon_compile(struct st_device *device, const struct st_device_subgraph *subgraph,
                                struct st_device_weights *const *weights, struct st_graph **graph) {
    struct hexagon_device *d = (struct hexagon_device *)device;
    struct hexagon_graph *g = calloc(1, sizeof *g);
    if (!g) return st_fail(STINT_E_NOMEM, "device 'hexagon': no memory for a graph");
    const struct st_linear_op *last = &subgraph->linear_ops[subgraph->n_linear_ops - 1];
    size_t norm_bytes = last->norm ? last->weight.n_in * sizeof(float) : 0;
    stint_status status = st_hexagon_take(d, sizeof(struct wire_graph) + norm_bytes, &g->range);
    if (status != STINT_OK) {
        free(g);
        return status;
    }
    struct wire_graph wire = {.n_linears = subgraph->n_linear_ops};
    for (uint32_t i = 0; i < subgraph->n_linear_ops; i++) {
        const struct st_linear_op *op = &subgraph->linear_ops[i];
        struct wire_linear *linear = &wire.linears[i];
        *linear = ((const struct hexagon_weights *)weights[i])->linear;
        linear->epilogue = op->epilogue;
        linear->act = op->act;
        linear->n_parts = op->n_parts;
        memcpy(linear->rows, op->rows, sizeof linear->rows);
        linear->two_term = subgraph->two_term[i];
    }
    if (last->norm) {
        wire.linears[1].norm = g->range->offset + (uint32_t)sizeof wire;
        wire.linears[1].norm_epsilon = last->norm_epsilon;
        memcpy(st_hexagon_at(d, g->range) + sizeof wire, last->norm, norm_bytes);
    }
    memcpy(st_hexagon_at(d, g->range), &wire, sizeof wire);
    g->base.subgraph = *subgraph;
    *graph = &g->base;
    return STINT_OK;
}

void st_hexagon_free_graph(struct st_graph *graph) {
    struct hexagon_graph *g = (struct hexagon_graph *)graph;
    st_hexagon_give((struct hexagon_device *)graph->device, g->range);
    free(g);
}

size_t st_hexagon_graph_bytes(const struct st_graph *graph) {
    return sizeof(struct hexagon_graph) + ((const struct hexagon_graph *)graph)->range->bytes;
}

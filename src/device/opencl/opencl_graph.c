// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/opencl.h"

#include <stdlib.h>

bool st_opencl_supports(const struct st_device *device, const struct st_device_subgraph *subgraph) {
    const struct opencl_device *d = (const struct opencl_device *)device;
    if (subgraph->in_parts) return false;
    for (uint32_t i = 0; i < subgraph->n_linear_ops; i++)
        if (st_opencl_weights_bytes(device, &subgraph->linear_ops[i].weight) > d->max_allocation)
            return false;
    return subgraph->n_linear_ops == 1 || d->exact_acts ||
           st_act_is_exact(subgraph->linear_ops[0].act);
}

stint_status st_opencl_compile(struct st_device *device, const struct st_device_subgraph *subgraph,
                               struct st_device_weights *const *weights, struct st_graph **graph) {
    (void)device;
    struct opencl_graph *g = calloc(1, sizeof *g);
    if (!g) return st_fail(STINT_E_NOMEM, "device 'opencl': no memory for a graph");
    g->base.subgraph = *subgraph;
    for (uint32_t i = 0; i < subgraph->n_linear_ops; i++)
        g->weights[i] = (const struct opencl_weights *)weights[i];
    *graph = &g->base;
    return STINT_OK;
}

void st_opencl_free_graph(struct st_graph *graph) {
    free(graph);
}

size_t st_opencl_graph_bytes(const struct st_graph *graph) {
    (void)graph;
    return sizeof(struct opencl_graph);
}

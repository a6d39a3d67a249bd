// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/opencl.h"

#include <stdlib.h>

bool st_opencl_supports(const struct st_device *device, const struct st_device_subgraph *subgraph) {
    const struct opencl_device *d = (const struct opencl_device *)device;
    if (subgraph->in_parts) return false;
    for (uint32_t i = 0; i < subgraph->n_linear_ops; i++)
        if (st_opencl_weights_bytes(device, &subgraph->linear_ops[i].weight) > d->max_allocation)
            return false;
    if (subgraph->n_linear_ops == 2 && subgraph->linear_ops[1].norm && !d->norm_lanes) return false;
    return subgraph->n_linear_ops == 1 || d->exact_acts ||
           st_act_is_exact(subgraph->linear_ops[0].act);
}

static stint_status make_norm(struct opencl_device *d, struct opencl_graph *g) {
    const struct st_linear_op *second = &g->base.subgraph.linear_ops[1];
    cl_int error;
    if (g->base.subgraph.n_linear_ops < 2 || !second->norm) return STINT_OK;
    // The host's memory is not written, although OpenCL takes no pointer to constants.
    g->norm =
        OPENCL_MAKE(d, &error, clCreateBuffer, d->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                    second->weight.n_in * sizeof(float), (void *)(uintptr_t)second->norm);
    return st_opencl_status(d, error, "clCreateBuffer");
}

stint_status st_opencl_compile(struct st_device *device, const struct st_device_subgraph *subgraph,
                               struct st_device_weights *const *weights, struct st_graph **graph) {
    struct opencl_graph *g = calloc(1, sizeof *g);
    if (!g) return st_fail(STINT_E_NOMEM, "device 'opencl': no memory for a graph");
    g->base.subgraph = *subgraph;
    for (uint32_t i = 0; i < subgraph->n_linear_ops; i++)
        g->weights[i] = (const struct opencl_weights *)weights[i];
    stint_status status = make_norm((struct opencl_device *)device, g);
    if (status == STINT_OK)
        *graph = &g->base;
    else
        free(g);
    return status;
}

void st_opencl_free_graph(struct st_graph *graph) {
    const struct opencl_device *d = (const struct opencl_device *)graph->device;
    struct opencl_graph *g = (struct opencl_graph *)graph;
    if (g->norm) d->cl.clReleaseMemObject(g->norm);
    free(g);
}

size_t st_opencl_graph_bytes(const struct st_graph *graph) {
    (void)graph;
    return sizeof(struct opencl_graph);
}

// SPDX-License-Identifier: Apache-2.0
// Buffers are host memory, weights stay in the package's map, a graph is its description.
#include "device/pool/pool.h"

#include "base/cpu.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>

static stint_status no_memory(const struct st_device_ops *ops) {
    return st_fail(STINT_E_NOMEM, "device '%s': no memory", ops->name);
}

static bool cpu_is_present(void) {
    return true;
}

static bool amx_is_present(void) {
    return (st_cpu_flags() & ST_CPU_AMX_INT8) != 0;
}

static stint_status open_device(const struct st_device_ops *ops,
                                const struct st_device_options *options, const char *settings,
                                struct st_device **device) {
    if (settings)
        return st_fail(STINT_E_ARG, "device '%s': it has no settings, but was given '%.64s'",
                       ops->name, settings);
    if (!options->workers)
        return st_fail(STINT_E_INTERNAL, "device '%s': it needs workers", ops->name);
    struct pool_device *d = calloc(1, sizeof *d);
    if (!d) return no_memory(ops);
    uint64_t flags = st_cpu_flags();
    if (ops == &st_device_pool_cpu) flags &= ~(uint64_t)ST_CPU_AMX_INT8;
    st_device_begin(&d->base, ops);
    d->base.caps = (struct st_device_caps){.host_memory = true, .max_rows = UINT32_MAX};
    d->workers = options->workers;
    d->kernel = st_int8_select(flags);
    d->few = st_int8_select(flags & ~(uint64_t)ST_CPU_AMX_INT8);
    d->elementwise = st_elementwise_select(flags);
    d->nested = st_nested_int8_select(flags);
    *device = &d->base;
    return STINT_OK;
}

static void close_device(struct st_device *device) {
    st_device_end(device);
    free(((struct pool_device *)device)->groups);
    free(((struct pool_device *)device)->turned);
    free(device);
}

// ---- Buffers

static stint_status allocate(struct st_device *device, size_t bytes, struct st_buffer **buffer) {
    struct pool_buffer *b = calloc(1, sizeof *b);
    size_t rounded = st_round_up(st_max(bytes, 1), ST_DEVICE_ALIGNMENT);
    if (b) b->data = aligned_alloc(ST_DEVICE_ALIGNMENT, rounded);
    if (!b || !b->data) {
        free(b);
        return no_memory(device->ops);
    }
    memset(b->data, 0, rounded);
    *buffer = &b->base;
    return STINT_OK;
}

static stint_status import(struct st_device *device, void *data, struct st_buffer **buffer) {
    struct pool_buffer *b = (struct pool_buffer *)*buffer;
    if (!b) b = calloc(1, sizeof *b);
    if (!b) return no_memory(device->ops);
    b->data = data;
    *buffer = &b->base;
    return STINT_OK;
}

static void free_buffer(struct st_buffer *buffer) {
    if (!buffer->imported) free(((struct pool_buffer *)buffer)->data);
    free(buffer);
}

static stint_status map(struct st_mapping *m) {
    m->data = ((struct pool_buffer *)m->buffer)->data + m->offset;
    return STINT_OK;
}

static stint_status unmap(struct st_mapping *m) {
    m->data = NULL;
    return STINT_OK;
}

// ---- Weights and graphs

static size_t weights_bytes(const struct st_device *device, const struct st_int8_weight *weight) {
    (void)device;
    return weight->n_panels * st_int8_panel_bytes(weight->n_in);
}

static stint_status import_weights(struct st_device *device, const struct st_int8_weight *weight,
                                   bool in_parts, struct st_device_weights **weights) {
    (void)in_parts;
    struct pool_weights *w = calloc(1, sizeof *w);
    if (!w) return no_memory(device->ops);
    w->weight = *weight;
    *weights = &w->base;
    return STINT_OK;
}

static void free_weights(struct st_device_weights *weights) {
    free(weights);
}

static bool supports(const struct st_device *device, const struct st_device_subgraph *subgraph) {
    (void)device;
    (void)subgraph; // whatever is well formed
    return true;
}

// Room for n rows of so many bytes, or of as many as there were.
static stint_status make_room(const struct pool_device *d, size_t n, size_t bytes, void **room,
                              size_t *row_bytes) {
    if (bytes <= *row_bytes) return STINT_OK;
    void *wider = aligned_alloc(ST_DEVICE_ALIGNMENT, st_round_up(n * bytes, ST_DEVICE_ALIGNMENT));
    if (!wider) return no_memory(d->base.ops);
    free(*room);
    *room = wider;
    *row_bytes = bytes;
    return STINT_OK;
}

static stint_status make_rooms(struct pool_device *d, const struct st_linear_op *linear_op,
                               const struct st_int8_weight *weight, bool in_parts) {
    ST_TRY(
        make_room(d, ST_POOL_FEW_ROWS, st_int8_padded_k(weight->n_in), &d->turned, &d->turned_row));
    if (in_parts || !linear_op->weight.set || linear_op->weight.panels) return STINT_OK;
    return make_room(d, st_pool_threads(d->workers), st_linear_op_group_bytes(linear_op),
                     &d->groups, &d->group_bytes);
}

static stint_status compile(struct st_device *device, const struct st_device_subgraph *subgraph,
                            struct st_device_weights *const *weights, struct st_graph **graph) {
    for (uint32_t i = 0; i < subgraph->n_linear_ops; i++)
        ST_TRY(make_rooms((struct pool_device *)device, &subgraph->linear_ops[i],
                          &((const struct pool_weights *)weights[i])->weight, subgraph->in_parts));
    struct st_graph *g = calloc(1, sizeof *g);
    if (!g) return no_memory(device->ops);
    g->subgraph = *subgraph;
    for (uint32_t i = 0; i < subgraph->n_linear_ops; i++)
        g->subgraph.linear_ops[i].weight = ((const struct pool_weights *)weights[i])->weight;
    *graph = g;
    return STINT_OK;
}

static void free_graph(struct st_graph *graph) {
    free(graph);
}

static size_t graph_bytes(const struct st_graph *graph) {
    return sizeof *graph;
}

#define OPERATIONS                                                                                 \
    .open = open_device, .close = close_device, .allocate = allocate, .import = import,            \
    .free_buffer = free_buffer, .map = map, .unmap = unmap, .weights_bytes = weights_bytes,        \
    .import_weights = import_weights, .free_weights = free_weights, .supports = supports,          \
    .compile = compile, .free_graph = free_graph, .graph_bytes = graph_bytes,                      \
    .start = st_pool_device_start, .row_scales = true, .norms = true, .sums = true

const struct st_device_ops st_device_pool_cpu = {
    .name = "cpu", .what = "the vector units of all cores", .present = cpu_is_present, OPERATIONS};
const struct st_device_ops st_device_pool_amx = {
    .name = "amx", .what = "Intel's tile unit, AMX-INT8", .present = amx_is_present, OPERATIONS};

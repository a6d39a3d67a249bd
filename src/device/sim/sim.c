// SPDX-License-Identifier: Apache-2.0
// Opening and closing; memory, which the host touches through a window of copies alone.
#include "device/sim/sim.h"

#include "base/cpu.h"
#include "device/two_term.h"

#include <stdlib.h>
#include <string.h>

enum { STALE = 0xa5 }; // what a window holds while it is not mapped

static bool is_present(void) {
    return true;
}

static stint_status no_memory(void) {
    return st_fail(STINT_E_NOMEM, "device 'sim': no memory");
}

static stint_status open_device(const struct st_device_ops *ops,
                                const struct st_device_options *options, const char *settings,
                                struct st_device **device) {
    (void)options;
    struct sim_settings read;
    ST_TRY(st_sim_read_settings(settings, &read));
    struct sim_device *d = calloc(1, sizeof *d);
    if (!d) return no_memory();
    st_device_begin(&d->base, ops);
    d->base.caps = (struct st_device_caps){
        .own_processor = true, .row_norms = true, .host_products = true, .max_rows = UINT32_MAX};
    d->settings = read;
    d->base.timeout_ms = read.timeout;
    d->elementwise = st_elementwise_select(st_cpu_flags());
    if (read.speed) d->kernel = st_int8_select(st_cpu_flags());
    d->nested = st_nested_select(st_cpu_flags());
    int error = pthread_create(&d->thread, NULL, st_sim_thread, d);
    if (error != 0) {
        st_device_end(&d->base);
        free(d);
        return st_fail(STINT_E_NOMEM, "device 'sim': its thread cannot be started: %s",
                       strerror(error));
    }
    *device = &d->base;
    return STINT_OK;
}

static void close_device(struct st_device *device) {
    struct sim_device *d = (struct sim_device *)device;
    pthread_mutex_lock(&device->mutex);
    d->closing = true;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->mutex);
    pthread_join(d->thread, NULL);
    st_device_end(device);
    free(d);
}

// ---- Memory

stint_status st_sim_allocate(struct sim_device *d, size_t bytes, void **memory) {
    pthread_mutex_lock(&d->base.mutex);
    bool fails = ++d->n_allocations == d->settings.nomem;
    pthread_mutex_unlock(&d->base.mutex);
    *memory = fails ? NULL : calloc(1, st_max(bytes, 1));
    return *memory ? STINT_OK : no_memory();
}

static stint_status allocate(struct st_device *device, size_t bytes, struct st_buffer **buffer) {
    struct sim_buffer *b = calloc(1, sizeof *b);
    if (!b) return no_memory();
    void *memory = NULL;
    stint_status status = st_sim_allocate((struct sim_device *)device, bytes, &memory);
    b->memory = memory;
    b->window = status == STINT_OK ? malloc(st_max(bytes, 1)) : NULL;
    if (!b->window) {
        free(b->memory);
        free(b);
        return no_memory();
    }
    *buffer = &b->base;
    return STINT_OK;
}

static void free_buffer(struct st_buffer *buffer) {
    struct sim_buffer *b = (struct sim_buffer *)buffer;
    free(b->memory);
    free(b->window);
    free(b);
}

static stint_status map(struct st_mapping *m) {
    const struct sim_buffer *b = (const struct sim_buffer *)m->buffer;
    m->data = b->window + m->offset;
    if (m->how & ST_MAP_READ) memcpy(m->data, b->memory + m->offset, m->bytes);
    return STINT_OK;
}

static stint_status unmap(struct st_mapping *m) {
    const struct sim_buffer *b = (const struct sim_buffer *)m->buffer;
    if (m->how & ST_MAP_WRITE) memcpy(b->memory + m->offset, m->data, m->bytes);
    memset(m->data, STALE, m->bytes);
    return STINT_OK;
}

// ---- Graphs

static bool supports(const struct st_device *device, const struct st_device_subgraph *subgraph) {
    (void)device;
    return !subgraph->in_parts;
}

static stint_status compile(struct st_device *device, const struct st_device_subgraph *subgraph,
                            struct st_device_weights *const *weights, struct st_graph **graph) {
    void *memory;
    ST_TRY(st_sim_allocate((struct sim_device *)device, sizeof(struct sim_graph), &memory));
    struct sim_graph *g = memory;
    size_t widest = 0;
    g->base.subgraph = *subgraph;
    for (uint32_t i = 0; i < subgraph->n_linear_ops; i++) {
        const struct sim_weights *w = (const struct sim_weights *)weights[i];
        g->base.subgraph.linear_ops[i].weight = w->weight;
        g->blocks[i] = w->blocks;
        widest = st_max(widest, w->weight.n_in);
    }
    if (((struct sim_device *)device)->kernel) {
        size_t rows = ST_TWO_TERMS * ST_SIM_TOKENS;
        g->x = calloc(rows, st_sim_kernel_row(widest));
        if (!g->x) {
            free(g);
            return no_memory();
        }
    }
    *graph = &g->base;
    return STINT_OK;
}

static void free_graph(struct st_graph *graph) {
    free(((struct sim_graph *)graph)->x);
    free(graph);
}

static size_t graph_bytes(const struct st_graph *graph) {
    (void)graph;
    return sizeof(struct sim_graph);
}

const struct st_device_ops st_device_sim = {
    .name = "sim",
    .what = "a second processor for tests, with memory of its own",
    .present = is_present,
    .open = open_device,
    .close = close_device,
    .allocate = allocate,
    .free_buffer = free_buffer,
    .map = map,
    .unmap = unmap,
    .weights_bytes = st_sim_weights_bytes,
    .import_weights = st_sim_import_weights,
    .free_weights = st_sim_free_weights,
    .supports = supports,
    .compile = compile,
    .free_graph = free_graph,
    .graph_bytes = graph_bytes,
    .has_stored = st_sim_has_stored,
    .takes_stored = st_sim_takes_stored,
    .stored_bytes = st_sim_stored_bytes,
    .import_stored = st_sim_import_stored,
    .free_stored = st_sim_free_stored,
    .start = st_sim_start,
    .cancel = st_sim_cancel,
    .sums = true,
};

// SPDX-License-Identifier: Apache-2.0
// Opening and closing; buffers.
#include "device/hexagon/hexagon.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "base/size.h"
#include "device/hexagon/tiles.h"
#include "device/settings.h"

#include <stdlib.h>
#include <string.h>

const struct st_hexagon_transport_ops *st_hexagon_transport_find(void) {
    static const struct st_hexagon_transport_ops *const all[] = {&st_hexagon_fastrpc,
                                                                 &st_hexagon_process};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->present()) return all[i];
    return NULL;
}

static bool is_present(void) {
    return st_hexagon_transport_find() != NULL;
}

static stint_status no_memory(void) {
    return st_fail(STINT_E_NOMEM, "device 'hexagon': no memory");
}

// ---- Opening

struct settings {
    uint32_t timeout_ms, patience_ms, host_norms;
    enum wire_fault fault;
    uint32_t fault_at;
};

static stint_status read_settings(const char *text, struct settings *s) {
    uint32_t at[WIRE_LIST + 1] = {0};
    *s = (struct settings){.patience_ms = ST_HEXAGON_PATIENCE_MS};
    const struct st_device_setting rows[] = {
        {"fail", &at[WIRE_FAIL]},       {"die", &at[WIRE_DIE]},
        {"spin", &at[WIRE_SPIN]},       {"sleep", &at[WIRE_SLEEP]},
        {"garbage", &at[WIRE_GARBAGE]}, {"list", &at[WIRE_LIST]},
        {"patience", &s->patience_ms},  {"timeout", &s->timeout_ms},
        {"host_norms", &s->host_norms}};
    ST_TRY(st_device_read_settings(
        "hexagon", text, rows, sizeof rows / sizeof *rows,
        "fail, die, spin, sleep, garbage, list (what the program does in place of the N-th job, "
        "from 1), patience or timeout (milliseconds), host_norms (1: norms stay on the CPU)"));
    for (uint32_t fault = 1; fault <= WIRE_LIST; fault++) {
        if (!at[fault]) continue;
        s->fault = (enum wire_fault)fault;
        s->fault_at = at[fault];
    }
    return STINT_OK;
}

static stint_status wait_until_ready(struct hexagon_device *d) {
    const struct st_hexagon_transport_ops *ops = d->transport->ops;
    const struct wire_dsp *dsp = &d->queue->dsp;
    uint32_t patience_ms = (uint32_t)st_max(ops->start_ms, d->patience_ms);
    ops->watch(d->transport, 0);
    while (__atomic_load_n(&dsp->ready, __ATOMIC_ACQUIRE) != WIRE_READY) {
        if (ops->wait(d->transport, ST_HEXAGON_TICK_MS) == ST_HEXAGON_GONE)
            return st_fail(STINT_E_DEVICE, "device 'hexagon': its program ended at its start");
        if (ops->is_stuck(d->transport, 0, patience_ms))
            return st_fail(STINT_E_DEVICE, "device 'hexagon': its program does not begin");
    }
    return STINT_OK;
}

// Room for what counts against the limit, and an eighth for gaps and descriptions, which do not.
static size_t memory_for(uint64_t limit) {
    return (size_t)st_round_up(WIRE_MEMORY + limit + limit / 8 + (1 << 20), WIRE_MEMORY);
}

static stint_status start_program(struct hexagon_device *d, const struct settings *settings,
                                  const struct st_hexagon_transport_ops *transport) {
    d->memory_bytes = (uint32_t)memory_for(d->base.caps.memory_limit);
    ST_TRY(transport->open(d->memory_bytes, &d->transport));
    d->queue = (void *)d->transport->memory;
    struct wire_host *host = &d->queue->host;
    host->magic = WIRE_MAGIC;
    host->version = WIRE_VERSION;
    host->queue_bytes = sizeof(struct wire_queue);
    host->memory_bytes = d->memory_bytes;
    host->vtcm_bytes = TILE_VTCM_BYTES;
    host->norm_lanes = st_elementwise_select(st_cpu_flags())->sum_lanes;
    host->fault = settings->fault;
    host->fault_at = settings->fault_at;
    ST_TRY(d->transport->ops->start(d->transport));
    ST_TRY(wait_until_ready(d));
    int error = pthread_create(&d->thread, NULL, st_hexagon_thread, d);
    if (error != 0)
        return st_fail(STINT_E_NOMEM, "device 'hexagon': its thread cannot be started: %s",
                       strerror(error));
    d->started = true;
    return STINT_OK;
}

static void close_device(struct st_device *device) {
    struct hexagon_device *d = (struct hexagon_device *)device;
    pthread_mutex_lock(&device->mutex);
    d->closing = true;
    pthread_cond_broadcast(&d->work);
    bool works = d->n_running > 0;
    pthread_mutex_unlock(&device->mutex);
    if (works) d->transport->ops->kill(d->transport);
    if (d->transport) d->transport->ops->end_waits(d->transport);
    if (d->started) pthread_join(d->thread, NULL);
    if (d->transport) d->transport->ops->close(d->transport);
    pthread_cond_destroy(&d->work);
    st_device_end(device);
    free(d);
}

static stint_status open_device(const struct st_device_ops *ops,
                                const struct st_device_options *options, const char *settings,
                                struct st_device **device) {
    struct settings read;
    ST_TRY(read_settings(settings, &read));
    const struct st_hexagon_transport_ops *transport = st_hexagon_transport_find();
    if (!transport) return st_fail(STINT_E_DEVICE, "device 'hexagon': this machine has none");
    struct hexagon_device *d = calloc(1, sizeof *d);
    if (!d) return no_memory();
    st_device_begin(&d->base, ops);
    st_cond_init(&d->work);
    uint64_t limit = options->memory_limit ? options->memory_limit : transport->default_bytes;
    d->base.caps = (struct st_device_caps){.own_processor = true,
                                           .virtual_clock = transport->virtual_clock,
                                           .memory_limit = st_min(limit, ST_HEXAGON_MAX_BYTES),
                                           .max_rows = UINT32_MAX};
    d->base.timeout_ms = read.timeout_ms;
    d->patience_ms = read.patience_ms;
    const struct st_elementwise *elementwise = st_elementwise_select(st_cpu_flags());
    d->exact_acts = elementwise->isa != 0;
    d->base.caps.row_norms = elementwise->sum_lanes > 0 && !read.host_norms;
    stint_status status = start_program(d, &read, transport);
    if (status == STINT_OK)
        *device = &d->base;
    else
        close_device(&d->base);
    return status;
}

// ---- Buffers

static stint_status allocate(struct st_device *device, size_t bytes, struct st_buffer **buffer) {
    struct hexagon_device *d = (struct hexagon_device *)device;
    struct hexagon_buffer *b = calloc(1, sizeof *b);
    if (!b) return no_memory();
    stint_status status = st_hexagon_take(d, bytes, &b->range);
    if (status != STINT_OK) {
        free(b);
        return status;
    }
    memset(st_hexagon_at(d, b->range), 0, bytes);
    *buffer = &b->base;
    return STINT_OK;
}

static void free_buffer(struct st_buffer *buffer) {
    struct hexagon_buffer *b = (struct hexagon_buffer *)buffer;
    st_hexagon_give((struct hexagon_device *)buffer->device, b->range);
    free(b);
}

static stint_status map(struct st_mapping *m) {
    const struct hexagon_buffer *b = (const struct hexagon_buffer *)m->buffer;
    m->data = st_hexagon_at((const struct hexagon_device *)b->base.device, b->range) + m->offset;
    return STINT_OK;
}

static stint_status unmap(struct st_mapping *m) {
    m->data = NULL;
    return STINT_OK;
}

const struct st_device_ops st_device_hexagon = {
    .name = "hexagon",
    .what = "a Hexagon DSP with HVX, of a Snapdragon or emulated by qemu-hexagon",
    .row_scales = true,
    .norms = true,
    .sums = true,
    .present = is_present,
    .open = open_device,
    .close = close_device,
    .allocate = allocate,
    .free_buffer = free_buffer,
    .map = map,
    .unmap = unmap,
    .weights_bytes = st_hexagon_weights_bytes,
    .import_weights = st_hexagon_import_weights,
    .free_weights = st_hexagon_free_weights,
    .supports = st_hexagon_supports,
    .compile = st_hexagon_compile,
    .free_graph = st_hexagon_free_graph,
    .graph_bytes = st_hexagon_graph_bytes,
    .start = st_hexagon_start,
    .cancel = st_hexagon_cancel,
};

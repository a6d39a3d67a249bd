// SPDX-License-Identifier: Apache-2.0
// Opening and closing; buffers.
#include "base/clock.h"
#include "device/opencl/opencl.h"
#include "device/settings.h"

#include <stdlib.h>
#include <string.h>

static stint_status no_memory(void) {
    return st_fail(STINT_E_NOMEM, "device 'opencl': no memory");
}

// ---- Opening

static stint_status read_settings(const char *text, struct opencl_settings *s) {
    const struct st_device_setting rows[] = {
        {"device", &s->device}, {"items", &s->items}, {"tokens", &s->tokens},
        {"copy", &s->copy},     {"steps", &s->steps}, {"timeout", &s->timeout},
        {"error", &s->error},   {"lose", &s->lose},   {"hang", &s->hang}};
    *s = (struct opencl_settings){0};
    ST_TRY(st_device_read_settings(
        "opencl", text, rows, sizeof rows / sizeof *rows,
        "device (the N-th of all, from 1), items, tokens (of a work group, of an item), copy, "
        "steps (1: weights are copied, division is in software), timeout (milliseconds), error, "
        "lose (the N-th call fails) or hang (the N-th job)"));
    if (s->items <= ST_OPENCL_MAX_ITEMS && s->tokens <= ST_OPENCL_MAX_TOKENS) return STINT_OK;
    return st_fail(STINT_E_ARG, "device 'opencl': items is at most %d, tokens %d",
                   ST_OPENCL_MAX_ITEMS, ST_OPENCL_MAX_TOKENS);
}

static void release_all(struct opencl_device *d) {
    if (d->hold) d->cl.clReleaseEvent(d->hold);
    if (d->counters) d->cl.clReleaseMemObject(d->counters);
    for (int i = 0; i < OPENCL_N_KERNELS; i++)
        if (d->kernels[i]) d->cl.clReleaseKernel(d->kernels[i]);
    if (d->program) d->cl.clReleaseProgram(d->program);
    if (d->transfers) d->cl.clReleaseCommandQueue(d->transfers);
    if (d->queue) d->cl.clReleaseCommandQueue(d->queue);
    if (d->context) d->cl.clReleaseContext(d->context);
}

// What a device that hangs still works on stays behind: callbacks may yet come.
static void close_device(struct st_device *device) {
    struct opencl_device *d = (struct opencl_device *)device;
    if (!st_opencl_drain(d)) return;
    release_all(d);
    pthread_mutex_destroy(&d->submitting);
    st_device_end(device);
    free(d);
}

static stint_status open_device(const struct st_device_ops *ops,
                                const struct st_device_options *options, const char *settings,
                                struct st_device **device) {
    (void)options;
    struct opencl_settings read;
    ST_TRY(read_settings(settings, &read));
    struct opencl_device *d = calloc(1, sizeof *d);
    if (!d) return no_memory();
    st_device_begin(&d->base, ops);
    pthread_mutex_init(&d->submitting, NULL);
    d->settings = read;
    d->base.timeout_ms = read.timeout;
    stint_status status = st_opencl_select(d);
    if (status == STINT_OK) status = st_opencl_build(d);
    if (status == STINT_OK)
        *device = &d->base;
    else
        close_device(&d->base);
    return status;
}

// ---- Buffers

static stint_status wait_and_release(struct opencl_device *d, cl_event event, const char *call) {
    cl_int error = OPENCL_CALL(d, clWaitForEvents, 1, &event);
    if (error) d->cl.clWaitForEvents(1, &event); // it was only said to have failed, or fails again
    d->cl.clReleaseEvent(event);
    return st_opencl_status(d, error, call);
}

static stint_status clear(struct opencl_device *d, cl_mem memory, size_t bytes) {
    const cl_uchar zero = 0;
    cl_event event;
    cl_int error = OPENCL_CALL(d, clEnqueueFillBuffer, d->transfers, memory, &zero, sizeof zero, 0,
                               bytes, 0, NULL, &event);
    ST_TRY(st_opencl_status(d, error, "clEnqueueFillBuffer"));
    return wait_and_release(d, event, "clEnqueueFillBuffer");
}

static stint_status allocate(struct st_device *device, size_t bytes, struct st_buffer **buffer) {
    struct opencl_device *d = (struct opencl_device *)device;
    struct opencl_buffer *b = calloc(1, sizeof *b);
    if (!b) return no_memory();
    cl_int error;
    bytes = st_max(bytes, 1);
    b->memory = OPENCL_MAKE(d, &error, clCreateBuffer, d->context,
                            CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL);
    stint_status status = st_opencl_status(d, error, "clCreateBuffer");
    if (status == STINT_OK) status = clear(d, b->memory, bytes);
    if (status == STINT_OK) {
        *buffer = &b->base;
        return STINT_OK;
    }
    if (b->memory) d->cl.clReleaseMemObject(b->memory);
    free(b);
    return status;
}

static void free_buffer(struct st_buffer *buffer) {
    struct opencl_buffer *b = (struct opencl_buffer *)buffer;
    const struct opencl_device *d = (const struct opencl_device *)buffer->device;
    d->cl.clReleaseMemObject(b->memory);
    free(b);
}

// OpenCL maps no part of no bytes.
static stint_status map(struct st_mapping *m) {
    struct opencl_device *d = (struct opencl_device *)m->buffer->device;
    cl_map_flags how = m->how & ST_MAP_READ ? CL_MAP_READ : CL_MAP_WRITE_INVALIDATE_REGION;
    cl_int error;
    if (m->bytes == 0) return STINT_OK;
    if ((m->how & (ST_MAP_READ | ST_MAP_WRITE)) == (ST_MAP_READ | ST_MAP_WRITE))
        how |= CL_MAP_WRITE;
    m->data = OPENCL_MAKE(d, &error, clEnqueueMapBuffer, d->transfers,
                          ((struct opencl_buffer *)m->buffer)->memory, CL_TRUE, how, m->offset,
                          m->bytes, 0, NULL, NULL);
    return st_opencl_status(d, error, "clEnqueueMapBuffer");
}

static stint_status unmap(struct st_mapping *m) {
    struct opencl_device *d = (struct opencl_device *)m->buffer->device;
    cl_event event;
    void *data = m->data;
    m->data = NULL;
    if (!data) return STINT_OK;
    cl_mem memory = ((struct opencl_buffer *)m->buffer)->memory;
    cl_int error =
        OPENCL_CALL(d, clEnqueueUnmapMemObject, d->transfers, memory, data, 0, NULL, &event);
    // What stays mapped is never freed.
    if (error) d->cl.clEnqueueUnmapMemObject(d->transfers, memory, data, 0, NULL, NULL);
    ST_TRY(st_opencl_status(d, error, "clEnqueueUnmapMemObject"));
    return wait_and_release(d, event, "clEnqueueUnmapMemObject");
}

const struct st_device_ops st_device_opencl = {
    .name = "opencl",
    .what = "a GPU, or another processor, through OpenCL",
    .row_scales = true,
    .present = st_opencl_present,
    .open = open_device,
    .close = close_device,
    .allocate = allocate,
    .free_buffer = free_buffer,
    .map = map,
    .unmap = unmap,
    .weights_bytes = st_opencl_weights_bytes,
    .import_weights = st_opencl_import_weights,
    .free_weights = st_opencl_free_weights,
    .supports = st_opencl_supports,
    .compile = st_opencl_compile,
    .free_graph = st_opencl_free_graph,
    .graph_bytes = st_opencl_graph_bytes,
    .takes_stored = st_opencl_takes_stored,
    .stored_bytes = st_opencl_stored_bytes,
    .import_stored = st_opencl_import_stored,
    .free_stored = st_opencl_free_stored,
    .start = st_opencl_start,
    .cancel = st_opencl_cancel,
};

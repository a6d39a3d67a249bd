// SPDX-License-Identifier: Apache-2.0
// Opening and closing.
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
    const struct st_device_setting rows[] = {{"device", &s->device},
                                             {"items", &s->items},
                                             {"tokens", &s->tokens},
                                             {"copy", &s->copy},
                                             {"steps", &s->steps},
                                             {"host_norms", &s->host_norms},
                                             {"timeout", &s->timeout},
                                             {"error", &s->error},
                                             {"lose", &s->lose},
                                             {"hang", &s->hang},
                                             {"attention", &s->attention},
                                             {"decode", &s->decode},
                                             {"decode_items", &s->decode_items}};
    *s = (struct opencl_settings){.attention = OPENCL_UNSET, .decode = OPENCL_UNSET};
    ST_TRY(st_device_read_settings(
        "opencl", text, rows, sizeof rows / sizeof *rows,
        "device (the N-th of all, from 1), items, tokens (of a work group, of an item), copy, "
        "steps (1: weights are copied, division is in software), host_norms (1: norms "
        "stay on the CPU), attention (0, 1: prompts attend on the device), decode (0, 1: steps are "
        "one job), decode_items (of a work group that attends in one), timeout (milliseconds), "
        "error, lose (the N-th call fails) or hang (the N-th "
        "job)"));
    if (st_max(s->items, s->decode_items) <= ST_OPENCL_MAX_ITEMS &&
        s->tokens <= ST_OPENCL_MAX_TOKENS)
        return STINT_OK;
    return st_fail(STINT_E_ARG, "device 'opencl': items and decode_items are at most %d, tokens %d",
                   ST_OPENCL_MAX_ITEMS, ST_OPENCL_MAX_TOKENS);
}

static void release_all(struct opencl_device *d) {
    if (d->hold) d->cl.clReleaseEvent(d->hold);
    if (d->counters) d->cl.clReleaseMemObject(d->counters);
    for (int i = 0; i < OPENCL_N_KERNELS; i++)
        if (d->kernels[i]) d->cl.clReleaseKernel(d->kernels[i]);
    if (d->program) d->cl.clReleaseProgram(d->program);
    if (d->programs) d->cl.clReleaseCommandQueue(d->programs);
    if (d->transfers) d->cl.clReleaseCommandQueue(d->transfers);
    if (d->queue) d->cl.clReleaseCommandQueue(d->queue);
    if (d->context) d->cl.clReleaseContext(d->context);
}

// What a device that hangs still works on stays behind, and the thread that waits for it.
static void close_device(struct st_device *device) {
    struct opencl_device *d = (struct opencl_device *)device;
    if (!st_opencl_drain(d)) return;
    release_all(d);
    pthread_mutex_destroy(&d->submitting);
    st_device_end(device);
    free(d);
}

static stint_status begin_to_wait(struct opencl_device *d) {
    d->has_waiter = pthread_create(&d->waiter, NULL, st_opencl_wait, d) == 0;
    return d->has_waiter ? STINT_OK : st_fail(STINT_E_NOMEM, "device 'opencl': no thread");
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
    if (status == STINT_OK) status = begin_to_wait(d);
    if (status == STINT_OK)
        *device = &d->base;
    else
        close_device(&d->base);
    return status;
}

const struct st_device_ops st_device_opencl = {
    .name = "opencl",
    .what = "a GPU, or another processor, through OpenCL",
    .row_scales = true,
    .sums = true,
    .norms = true,
    .present = st_opencl_present,
    .open = open_device,
    .close = close_device,
    .allocate = st_opencl_allocate,
    .borrow = st_opencl_borrow,
    .free_buffer = st_opencl_free_buffer,
    .map = st_opencl_map,
    .unmap = st_opencl_unmap,
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
    .attends = st_opencl_attends,
    .attends_steps = st_opencl_attends_steps,
    .compile_program = st_opencl_compile_program,
    .free_program = st_opencl_free_program,
    .start = st_opencl_start,
    .cancel = st_opencl_cancel,
};

// SPDX-License-Identifier: Apache-2.0
// Panels as the package holds them, which work items read side by side: where the device reads the
// host's memory they stay where they are. Then the factors and biases.
#include "device/opencl/opencl.h"

#include <stdlib.h>
#include <string.h>

enum { PLACE = 64 }; // alignment of panels that are read in place

static size_t values_bytes(const struct st_int8_weight *w) {
    return (size_t)w->n_panels * ST_INT8_PANEL * sizeof(float) * (w->bias ? 2 : 1);
}

static size_t panels_bytes(const struct st_int8_weight *w) {
    return w->n_panels * st_int8_panel_bytes(w->n_in);
}

size_t st_opencl_weights_bytes(const struct st_device *device, const struct st_int8_weight *w) {
    (void)device;
    return panels_bytes(w) + values_bytes(w);
}

static stint_status make_values(struct opencl_device *d, const struct st_int8_weight *from,
                                struct opencl_weights *w) {
    size_t bytes = values_bytes(from), n = (size_t)from->n_panels * ST_INT8_PANEL;
    float *values = malloc(bytes);
    cl_int error;
    if (!values) return st_fail(STINT_E_NOMEM, "device 'opencl': no memory for weights");
    memcpy(values, from->factor, n * sizeof *values);
    if (from->bias) memcpy(values + n, from->bias, n * sizeof *values);
    w->values = OPENCL_MAKE(d, &error, clCreateBuffer, d->context,
                            CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes, values);
    free(values);
    return st_opencl_status(d, error, "clCreateBuffer");
}

static cl_int make_panels_so(struct opencl_device *d, const struct st_int8_weight *from,
                             cl_mem_flags how, struct opencl_weights *w) {
    cl_int error;
    // The host's memory is not written, although OpenCL takes no pointer to constants.
    w->panels = OPENCL_MAKE(d, &error, clCreateBuffer, d->context, CL_MEM_READ_ONLY | how,
                            panels_bytes(from), (void *)(uintptr_t)from->panels);
    return error;
}

// A driver may not want a file's pages in place: then it gets a copy too.
static stint_status make_panels(struct opencl_device *d, const struct st_int8_weight *from,
                                struct opencl_weights *w) {
    bool in_place = d->unified && !from->fleeting && (uintptr_t)from->panels % PLACE == 0;
    cl_int error = in_place ? make_panels_so(d, from, CL_MEM_USE_HOST_PTR, w) : CL_SUCCESS;
    if (!in_place || (error && st_opencl_failure(d, error) != ST_FAILURE_LOST))
        error = make_panels_so(d, from, CL_MEM_COPY_HOST_PTR, w);
    return st_opencl_status(d, error, "clCreateBuffer");
}

static void release_weights(const struct opencl_device *d, struct opencl_weights *w) {
    if (w->panels) d->cl.clReleaseMemObject(w->panels);
    if (w->values) d->cl.clReleaseMemObject(w->values);
    free(w);
}

stint_status st_opencl_import_weights(struct st_device *device, const struct st_int8_weight *from,
                                      bool in_parts, struct st_device_weights **weights) {
    struct opencl_device *d = (struct opencl_device *)device;
    (void)in_parts; // never: there is no host memory
    struct opencl_weights *w = calloc(1, sizeof *w);
    if (!w) return st_fail(STINT_E_NOMEM, "device 'opencl': no memory for weights");
    w->has_bias = from->bias != NULL;
    stint_status status = make_panels(d, from, w);
    if (status == STINT_OK) status = make_values(d, from, w);
    if (status == STINT_OK)
        *weights = &w->base;
    else
        release_weights(d, w);
    return status;
}

void st_opencl_free_weights(struct st_device_weights *weights) {
    release_weights((struct opencl_device *)weights->device, (struct opencl_weights *)weights);
}

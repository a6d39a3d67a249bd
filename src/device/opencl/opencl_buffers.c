// SPDX-License-Identifier: Apache-2.0
// Buffers. A device with the host's memory maps them. Any other one has them in its own memory,
// which CL_MEM_ALLOC_HOST_PTR need not give, and a copy of each in page-locked memory of the host;
// only the mapped part travels.
#include "device/opencl/opencl.h"

#include <stdlib.h>

static stint_status no_memory(void) {
    return st_fail(STINT_E_NOMEM, "device 'opencl': no memory");
}

static stint_status wait_and_release(struct opencl_device *d, cl_event event, const char *call) {
    cl_int error = st_opencl_wait_for(d, event);
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

// Page-locked memory of the host: OpenCL has no other name for it than a buffer that stays mapped.
static stint_status make_staging(struct opencl_device *d, size_t bytes, struct opencl_buffer *b) {
    cl_int error;
    b->staging = OPENCL_MAKE(d, &error, clCreateBuffer, d->context,
                             CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL);
    ST_TRY(st_opencl_status(d, error, "clCreateBuffer"));
    b->host = OPENCL_MAKE(d, &error, clEnqueueMapBuffer, d->transfers, b->staging, CL_TRUE,
                          CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL, NULL);
    return st_opencl_status(d, error, "clEnqueueMapBuffer");
}

static stint_status make_buffer(struct opencl_device *d, size_t bytes, struct opencl_buffer *b) {
    cl_mem_flags where = d->unified ? CL_MEM_ALLOC_HOST_PTR : 0;
    cl_int error;
    b->memory =
        OPENCL_MAKE(d, &error, clCreateBuffer, d->context, CL_MEM_READ_WRITE | where, bytes, NULL);
    ST_TRY(st_opencl_status(d, error, "clCreateBuffer"));
    ST_TRY(clear(d, b->memory, bytes));
    return d->unified ? STINT_OK : make_staging(d, bytes, b);
}

static void release(const struct opencl_device *d, struct opencl_buffer *b) {
    if (b->staging && b->host)
        d->cl.clEnqueueUnmapMemObject(d->transfers, b->staging, b->host, 0, NULL, NULL);
    if (b->staging) d->cl.clReleaseMemObject(b->staging);
    if (b->memory) d->cl.clReleaseMemObject(b->memory);
    free(b);
}

stint_status st_opencl_allocate(struct st_device *device, size_t bytes, struct st_buffer **buffer) {
    struct opencl_device *d = (struct opencl_device *)device;
    struct opencl_buffer *b = calloc(1, sizeof *b);
    if (!b) return no_memory();
    stint_status status = make_buffer(d, st_max(bytes, 1), b);
    if (status == STINT_OK)
        *buffer = &b->base;
    else
        release(d, b);
    return status;
}

// A write from where a buffer's own host memory lies tells the device what the host has put there.
stint_status st_opencl_borrow(struct st_device *device, void *data, size_t bytes,
                              struct st_buffer **buffer) {
    struct opencl_device *d = (struct opencl_device *)device;
    cl_mem_flags where = d->unified ? CL_MEM_USE_HOST_PTR : 0;
    cl_int error;
    if (bytes > d->max_allocation)
        return st_fail(STINT_E_LIMIT, "device 'opencl': no buffer of %zu bytes", bytes);
    struct opencl_buffer *b = calloc(1, sizeof *b);
    if (!b) return no_memory();
    b->host = data;
    b->memory = OPENCL_MAKE(d, &error, clCreateBuffer, d->context, CL_MEM_READ_WRITE | where, bytes,
                            d->unified ? data : NULL);
    if (b->memory)
        *buffer = &b->base;
    else
        free(b);
    return st_opencl_status(d, error, "clCreateBuffer");
}

void st_opencl_free_buffer(struct st_buffer *buffer) {
    release((const struct opencl_device *)buffer->device, (struct opencl_buffer *)buffer);
}

static stint_status map_in_place(struct opencl_device *d, cl_mem memory, struct st_mapping *m) {
    cl_map_flags how = m->how & ST_MAP_READ ? CL_MAP_READ : CL_MAP_WRITE_INVALIDATE_REGION;
    cl_int error;
    if ((m->how & (ST_MAP_READ | ST_MAP_WRITE)) == (ST_MAP_READ | ST_MAP_WRITE))
        how |= CL_MAP_WRITE;
    m->data = OPENCL_MAKE(d, &error, clEnqueueMapBuffer, d->transfers, memory, CL_TRUE, how,
                          m->offset, m->bytes, 0, NULL, NULL);
    return st_opencl_status(d, error, "clEnqueueMapBuffer");
}

// OpenCL maps and copies no part of no bytes.
stint_status st_opencl_map(struct st_mapping *m) {
    struct opencl_device *d = (struct opencl_device *)m->buffer->device;
    const struct opencl_buffer *b = (const struct opencl_buffer *)m->buffer;
    if (m->bytes == 0) return STINT_OK;
    if (!b->host) return map_in_place(d, b->memory, m);
    if (m->how & ST_MAP_READ) {
        cl_int error = OPENCL_CALL(d, clEnqueueReadBuffer, d->transfers, b->memory, CL_TRUE,
                                   m->offset, m->bytes, b->host + m->offset, 0, NULL, NULL);
        ST_TRY(st_opencl_status(d, error, "clEnqueueReadBuffer"));
    }
    m->data = b->host + m->offset;
    return STINT_OK;
}

static stint_status unmap_in_place(struct opencl_device *d, cl_mem memory, void *data) {
    cl_event event;
    cl_int error =
        OPENCL_CALL(d, clEnqueueUnmapMemObject, d->transfers, memory, data, 0, NULL, &event);
    // What stays mapped is never freed.
    if (error) d->cl.clEnqueueUnmapMemObject(d->transfers, memory, data, 0, NULL, NULL);
    ST_TRY(st_opencl_status(d, error, "clEnqueueUnmapMemObject"));
    return wait_and_release(d, event, "clEnqueueUnmapMemObject");
}

stint_status st_opencl_unmap(struct st_mapping *m) {
    struct opencl_device *d = (struct opencl_device *)m->buffer->device;
    const struct opencl_buffer *b = (const struct opencl_buffer *)m->buffer;
    void *data = m->data;
    m->data = NULL;
    if (!data) return STINT_OK;
    if (!b->host) return unmap_in_place(d, b->memory, data);
    if (!(m->how & ST_MAP_WRITE)) return STINT_OK;
    cl_int error = OPENCL_CALL(d, clEnqueueWriteBuffer, d->transfers, b->memory, CL_TRUE, m->offset,
                               m->bytes, data, 0, NULL, NULL);
    return st_opencl_status(d, error, "clEnqueueWriteBuffer");
}

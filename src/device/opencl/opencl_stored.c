// SPDX-License-Identifier: Apache-2.0
// Linears as they are stored (device/stored.h): where the device reads the host's memory they stay
// where they are, else each region gets a copy.
#include "device/opencl/opencl.h"

#include <stdlib.h>

enum { PLACE = 64 }; // alignment of memory that is read in place

struct region {
    const void *data;
    size_t bytes;
};

// ---- Import

bool st_opencl_takes_stored(const struct st_device *device, const struct st_stored_linear *l) {
    const struct opencl_device *d = (const struct opencl_device *)device;
    return d->stored && st_opencl_stored_bytes(l) <= d->max_allocation;
}

static size_t rows_bytes(const struct st_nested_weight *w) {
    return (size_t)(w->high - w->low + 1) * st_nested_padded_rows(w->n_out) *
           sizeof(struct st_nested_row);
}

size_t st_opencl_stored_bytes(const struct st_stored_linear *l) {
    const struct st_nested_weight *w = l->nested;
    if (!w) return l->n_out * l->row_bytes;
    return st_nested_code_bytes(w->n_out, w->n_in, w->high) + rows_bytes(w) +
           (size_t)(w->high - w->low + 1) * st_nested_group_bytes(w->n_out, w->n_in);
}

// In place the buffer begins where a line of the host's memory does, and *offset says how far
// behind that; NULL: the region must begin there. So the rows of two linears may share a line,
// which nobody writes. OpenCL leaves commands undefined that get buffers with common memory: a
// command here gets the rows of one linear, and all that it gets beside them begins at a line. A
// driver may not want a file's pages: then it gets a copy too.
static stint_status make(struct opencl_device *d, struct region from, cl_mem *memory,
                         size_t *offset) {
    size_t behind = (uintptr_t)from.data % PLACE;
    const char *line = (const char *)from.data - behind;
    bool in_place = d->unified && (offset || behind == 0);
    cl_int error = CL_SUCCESS;
    // The host's memory is not written, although OpenCL takes no pointer to constants.
    if (in_place)
        *memory = OPENCL_MAKE(d, &error, clCreateBuffer, d->context,
                              CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, from.bytes + behind,
                              (void *)(uintptr_t)line);
    if (*memory && offset) *offset = behind;
    if (!*memory && st_opencl_failure(d, error) != ST_FAILURE_LOST)
        *memory = OPENCL_MAKE(d, &error, clCreateBuffer, d->context,
                              CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, from.bytes,
                              (void *)(uintptr_t)from.data);
    return st_opencl_status(d, error, "clCreateBuffer");
}

// The regions of nested codes in turn; the last one is NULL.
struct nested_region {
    struct region from;
    cl_mem *memory;
    size_t *at; // in the copy of all
};
enum { MAX_REGIONS = 2 * (ST_NESTED_HIGHEST + 1) + 1 };

static void list_regions(const struct st_nested_weight *w, struct opencl_stored *s,
                         struct nested_region list[MAX_REGIONS]) {
    size_t panels = st_nested_padded_rows(w->n_out) / ST_NESTED_PANEL, n = 0;
    for (unsigned bit = 2; bit <= w->high; bit++)
        list[n++] = (struct nested_region){
            {st_nested_plane(w, bit), panels * st_nested_plane_panel_bytes(w->n_in, bit)},
            &s->planes[bit],
            &s->at.planes[bit]};
    for (unsigned bits = w->low; bits <= w->high; bits++)
        list[n++] =
            (struct nested_region){{w->groups[bits], st_nested_group_bytes(w->n_out, w->n_in)},
                                   &s->groups[bits],
                                   &s->at.groups[bits]};
    list[n++] = (struct nested_region){{w->rows, rows_bytes(w)}, &s->rows, &s->at.rows};
    list[n] = (struct nested_region){{NULL, 0}, NULL, NULL};
}

// Where all regions are copied they are parts of one buffer: each buffer costs a command time.
static stint_status copy_region(struct opencl_device *d, struct opencl_stored *s,
                                const struct nested_region *r) {
    const cl_buffer_region part = {*r->at, r->from.bytes};
    cl_int error = OPENCL_CALL(d, clEnqueueWriteBuffer, d->transfers, s->whole, CL_TRUE, *r->at,
                               r->from.bytes, r->from.data, 0, NULL, NULL);
    ST_TRY(st_opencl_status(d, error, "clEnqueueWriteBuffer"));
    *r->memory = OPENCL_MAKE(d, &error, clCreateSubBuffer, s->whole, CL_MEM_READ_ONLY,
                             CL_BUFFER_CREATE_TYPE_REGION, &part);
    return st_opencl_status(d, error, "clCreateSubBuffer");
}

static stint_status copy_nested(struct opencl_device *d, const struct st_nested_weight *w,
                                struct opencl_stored *s) {
    struct nested_region list[MAX_REGIONS];
    size_t bytes = 0;
    cl_int error;
    list_regions(w, s, list);
    for (const struct nested_region *r = list; r->memory; r++) {
        *r->at = bytes;
        bytes = st_round_up(bytes + r->from.bytes, d->alignment);
    }
    s->whole = OPENCL_MAKE(d, &error, clCreateBuffer, d->context, CL_MEM_READ_ONLY, bytes, NULL);
    ST_TRY(st_opencl_status(d, error, "clCreateBuffer"));
    for (const struct nested_region *r = list; r->memory; r++) ST_TRY(copy_region(d, s, r));
    return STINT_OK;
}

static stint_status make_nested(struct opencl_device *d, const struct st_nested_weight *w,
                                struct opencl_stored *s) {
    struct nested_region list[MAX_REGIONS];
    if (!d->unified) return copy_nested(d, w, s);
    list_regions(w, s, list);
    for (const struct nested_region *r = list; r->memory; r++)
        ST_TRY(make(d, r->from, r->memory, NULL));
    return STINT_OK;
}

static void release(const struct opencl_device *d, struct opencl_stored *s) {
    for (unsigned bit = 0; bit <= ST_NESTED_HIGHEST; bit++) {
        if (s->planes[bit]) d->cl.clReleaseMemObject(s->planes[bit]);
        if (s->groups[bit]) d->cl.clReleaseMemObject(s->groups[bit]);
    }
    if (s->rows) d->cl.clReleaseMemObject(s->rows);
    if (s->whole) d->cl.clReleaseMemObject(s->whole);
    free(s);
}

stint_status st_opencl_import_stored(struct st_device *device, const struct st_stored_linear *l,
                                     struct st_device_stored **stored) {
    struct opencl_device *d = (struct opencl_device *)device;
    struct opencl_stored *s = calloc(1, sizeof *s);
    if (!s) return st_fail(STINT_E_NOMEM, "device 'opencl': no memory for weights");
    const struct region rows = {l->rows, l->n_out * l->row_bytes};
    stint_status status =
        l->nested ? make_nested(d, l->nested, s) : make(d, rows, &s->rows, &s->offset);
    if (status == STINT_OK)
        *stored = &s->base;
    else
        release(d, s);
    return status;
}

void st_opencl_free_stored(struct st_device_stored *stored) {
    release((const struct opencl_device *)stored->device, (struct opencl_stored *)stored);
}

// ---- Jobs

static struct ocl_multiply multiply_of(const struct st_job *job) {
    const struct opencl_stored *s = (const struct opencl_stored *)job->stored;
    const struct st_stored_linear *l = &job->stored->linear;
    const struct st_multiply_args *a = &job->multiply;
    struct ocl_multiply m = {.x = a->x.offset,
                             .y = a->y.offset,
                             .y_row = a->y.row_bytes,
                             .n_out = l->n_out,
                             .k = l->n_in,
                             .n_columns = (ocl_u32)(a->n * a->terms),
                             .terms = (ocl_u32)a->terms};
    if (l->nested) {
        const struct st_stored_nested parts = st_stored_nested(l->n_in, m.n_columns);
        m.scale = parts.scale;
        m.sums = parts.sums;
        m.bits = a->bits;
        m.first_row = (ocl_u32)((a->bits - l->nested->low) * st_nested_padded_rows(l->n_out));
        return m;
    }
    const struct st_dtype_traits *type = st_dtype_traits(l->dtype);
    m.w = s->offset;
    m.row_bytes = l->row_bytes;
    m.chunk_bytes = ST_BLOCKS_CHUNK / type->block_items * type->block_bytes;
    m.chunk = sizeof(struct st_blocks_chunk);
    m.high = offsetof(struct st_blocks_chunk, high);
    m.low = offsetof(struct st_blocks_chunk, low);
    m.scale = offsetof(struct st_blocks_chunk, scale);
    m.half_sums = offsetof(struct st_blocks_chunk, half_sum);
    return m;
}

cl_int st_opencl_multiply(struct opencl_ticket *t) {
    const struct st_job *job = t->job;
    const struct opencl_stored *s = (const struct opencl_stored *)job->stored;
    const struct st_stored_linear *l = &job->stored->linear;
    const struct ocl_multiply m = multiply_of(job);
    const struct opencl_launch launch = {.kernel = l->nested ? OPENCL_MULTIPLY_NESTED
                                                             : OPENCL_MULTIPLY + (unsigned)l->dtype,
                                         .group = (size_t)OCL_STORED_ROWS * t->device->lanes,
                                         .groups = st_ceil_div(l->n_out, OCL_STORED_ROWS),
                                         .rows = st_ceil_div(m.n_columns, OCL_STORED_COLUMNS)};
    cl_mem x = ((const struct opencl_buffer *)job->multiply.x.buffer)->memory;
    cl_mem y = ((const struct opencl_buffer *)job->multiply.y.buffer)->memory;
    if (!l->nested) {
        const struct opencl_argument arguments[] = {OPENCL_VALUE(m), OPENCL_VALUE(x),
                                                    OPENCL_VALUE(s->rows), OPENCL_VALUE(y)};
        return st_opencl_launch(t, &launch, arguments, 4);
    }
    cl_mem plane[ST_NESTED_HIGHEST + 1];
    for (unsigned bit = 2; bit <= ST_NESTED_HIGHEST; bit++)
        plane[bit] = s->planes[bit] ? s->planes[bit] : s->planes[2]; // not read
    const struct opencl_argument arguments[] = {
        OPENCL_VALUE(m),        OPENCL_VALUE(x),        OPENCL_VALUE(plane[2]),
        OPENCL_VALUE(plane[3]), OPENCL_VALUE(plane[4]), OPENCL_VALUE(plane[5]),
        OPENCL_VALUE(plane[6]), OPENCL_VALUE(plane[7]), OPENCL_VALUE(s->groups[job->multiply.bits]),
        OPENCL_VALUE(s->rows),  OPENCL_VALUE(y)};
    return st_opencl_launch(t, &launch, arguments, 11);
}

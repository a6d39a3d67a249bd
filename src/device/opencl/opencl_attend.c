// SPDX-License-Identifier: Apache-2.0
// Attention of prompts (device/attention.h) over a cache of floats.
#include "device/opencl/opencl.h"

enum { QUAD = 4 }; // elements of a row that an item reads at a time

static_assert((int)OCL_KEY_TILE == ST_DEVICE_KEY_TILE, "the online softmax has the host's steps");

// Queries, sums and scores of a group.
static size_t work_bytes(uint32_t dim) {
    return OCL_ATTEND_LANES * (2 * (size_t)dim + OCL_KEY_TILE) * sizeof(float);
}

// Exponentials have the host's bits, or attention is the host's: what a subgraph computes does not
// depend on where it runs.
bool st_opencl_attends(const struct st_device *device, const struct st_device_attention *a) {
    const struct opencl_device *d = (const struct opencl_device *)device;
    enum { OTHER_LOCAL = 1024 }; // what the kernel declares itself, and the driver's own
    return d->settings.attention && d->exact_acts && a->dim % QUAD == 0 &&
           (a->type == ST_KV_F32 || a->type == ST_KV_F16) &&
           work_bytes(a->dim) + OTHER_LOCAL <= d->local_memory;
}

struct ocl_attend st_opencl_attention(const struct st_device_attention *shape,
                                      const struct st_slice *q, const struct st_slice *out,
                                      const struct st_slice *keys, const struct st_slice *values) {
    const size_t token_bytes = (size_t)shape->n_heads * shape->dim * sizeof(float);
    return (struct ocl_attend){.q = q->offset,
                               .out = out->offset,
                               .keys = keys->offset,
                               .values = values->offset,
                               .key_head = keys->row_bytes,
                               .value_head = values->row_bytes,
                               .row_bytes = (ocl_u32)st_kv_row_bytes(shape->type, shape->dim),
                               .token_bytes = (ocl_u32)token_bytes,
                               .window = shape->window,
                               .shared = shape->n_heads / shape->n_kv,
                               .dim = shape->dim,
                               .scale = shape->scale,
                               .softcap = shape->softcap,
                               .to_cap = shape->softcap > 0.0f ? 2.0f / shape->softcap : 0.0f};
}

cl_int st_opencl_attend(struct opencl_ticket *t) {
    const struct st_attend_args *a = &t->job->attend;
    const struct st_device_attention *shape = &a->shape;
    struct ocl_attend args = st_opencl_attention(shape, &a->q, &a->out, &a->keys, &a->values);
    args.n = (ocl_u32)a->n;
    args.position = (ocl_u32)a->position;
    const struct opencl_launch launch = {.kernel = OPENCL_ATTEND + (unsigned)shape->type,
                                         .group = t->device->settings.items,
                                         .groups =
                                             st_ceil_div(a->n * args.shared, OCL_ATTEND_LANES),
                                         .rows = shape->n_kv};
    cl_mem q = ((const struct opencl_buffer *)a->q.buffer)->memory;
    cl_mem keys = ((const struct opencl_buffer *)a->keys.buffer)->memory;
    cl_mem values = ((const struct opencl_buffer *)a->values.buffer)->memory;
    cl_mem out = ((const struct opencl_buffer *)a->out.buffer)->memory;
    const struct opencl_argument arguments[] = {OPENCL_VALUE(args), OPENCL_VALUE(q),
                                                OPENCL_VALUE(keys), OPENCL_VALUE(values),
                                                OPENCL_VALUE(out),  {work_bytes(shape->dim), NULL}};
    return st_opencl_launch(t, &launch, arguments, 6);
}

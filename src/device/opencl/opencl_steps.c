// SPDX-License-Identifier: Apache-2.0
// Programs (device/program.h): each operation is a kernel of its own whose arguments are set once.
// They go into a queue apart, which takes no times, since that costs more than most of them.
#include "device/opencl/opencl.h"

#include <stdlib.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        cl_int error_ = (call);                                                                    \
        if (error_ != CL_SUCCESS) return error_;                                                   \
    } while (0)

enum { QUAD = 4, MOST_DIM = 1024 }; // steps.cl

static_assert(sizeof(struct ocl_place) == sizeof(struct st_program_place) &&
                  sizeof(struct ocl_step_quantize) == 96 &&
                  sizeof(struct ocl_step_multiply) == 296 &&
                  sizeof(struct ocl_step_rotate) == 192 && sizeof(struct ocl_step_attend) == 112,
              "no padding, so that two compilers agree");

struct command {
    cl_kernel kernel;
    size_t group, groups; // items; groups
};

struct opencl_program {
    struct st_program base;
    size_t n;
    struct command commands[];
};

// Local memory of a group that attends, about.
static uint64_t attend_bytes(const struct opencl_device *d, uint32_t tile) {
    enum { OTHER = 4096 };
    return sizeof(float) * (2 * tile + 2 * MOST_DIM + d->settings.decode_items) + OTHER;
}

// A head's values have room in the smallest.
enum { MIN_TILE = MOST_DIM, MAX_TILE = 4096 };

uint32_t st_opencl_step_tile(const struct opencl_device *d) {
    uint32_t tile = MAX_TILE;
    while (tile > MIN_TILE && attend_bytes(d, tile) > d->local_memory) tile /= 2;
    return tile;
}

bool st_opencl_attends_steps(const struct st_device *device, const struct st_device_attention *a) {
    const struct opencl_device *d = (const struct opencl_device *)device;
    return a->dim % QUAD == 0 && a->dim <= MOST_DIM &&
           attend_bytes(d, MIN_TILE) <= d->local_memory &&
           (a->type == ST_KV_F32 || a->type == ST_KV_F16);
}

// ---- Commands

struct builder {
    struct opencl_device *d;
    cl_mem memory, cache;
    struct command *command;
};

static cl_int make(const struct builder *b, const char *name, struct command command,
                   const struct opencl_argument *arguments, cl_uint n) {
    struct opencl_device *d = b->d;
    cl_int error;
    command.kernel = OPENCL_MAKE(d, &error, clCreateKernel, d->program, name);
    *b->command = command;
    for (cl_uint i = 0; i < n && !error; i++)
        error = OPENCL_CALL(d, clSetKernelArg, command.kernel, i, arguments[i].bytes,
                            arguments[i].value);
    return error;
}

static cl_int make_quantize(const struct builder *b, const struct st_program_quantize *q) {
    const struct st_stored_nested parts = st_stored_nested(q->n, q->terms);
    const struct ocl_step_quantize a = {.x = q->x.offset,
                                        .add = q->add.offset,
                                        .sum = q->sum.offset,
                                        .norm = q->norm.offset,
                                        .up = q->up.offset,
                                        .to = q->to.offset,
                                        .scale = parts.scale,
                                        .sums = parts.sums,
                                        .n = (ocl_u32)q->n,
                                        .terms = (ocl_u32)q->terms,
                                        .act = q->act,
                                        .has_add = q->add.buffer != NULL,
                                        .has_norm = q->norm.buffer != NULL,
                                        .has_up = q->up.buffer != NULL,
                                        .epsilon = q->epsilon};
    const struct opencl_argument arguments[] = {OPENCL_VALUE(a), OPENCL_VALUE(b->memory)};
    return make(b, "step_quantize",
                (struct command){NULL, b->d->settings.items, st_nested_blocks(q->n)}, arguments, 2);
}

static struct ocl_step_linear linear_of(const struct opencl_stored *s, unsigned bits, size_t y) {
    const struct st_nested_weight *w = s->base.linear.nested;
    const size_t rows = st_nested_padded_rows(w->n_out);
    struct ocl_step_linear l = {.groups = s->at.groups[bits],
                                .rows = s->at.rows,
                                .y = y,
                                .bits = bits,
                                .n_out = w->n_out,
                                .first_row = (ocl_u32)((bits - w->low) * rows),
                                .n_groups = (ocl_u32)(rows / OCL_STORED_ROWS)};
    for (unsigned i = 0; i < OCL_PLANES; i++) l.planes[i] = s->at.planes[2 + i];
    return l;
}

// What there are fewer of is stood for by the first.
static cl_int make_multiply(const struct builder *b, const struct st_program_multiply *m) {
    enum { OF_PART = OCL_PLANES + 2 }; // planes, groups, rows
    const size_t k = m->stored[0]->linear.n_in;
    const struct st_stored_nested parts = st_stored_nested(k, m->terms);
    const bool whole = !b->d->unified;
    struct ocl_step_multiply a = {.x = m->x.offset,
                                  .scale = parts.scale,
                                  .sums = parts.sums,
                                  .k = (ocl_u32)k,
                                  .terms = (ocl_u32)m->terms};
    struct opencl_argument arguments[2 + OCL_PARTS * OF_PART] = {OPENCL_VALUE(a),
                                                                 OPENCL_VALUE(b->memory)};
    size_t groups = 0;
    cl_uint n = 2;
    for (size_t i = 0; i < OCL_PARTS; i++) {
        const size_t of = i < m->n_parts ? i : 0;
        const struct opencl_stored *s = (const struct opencl_stored *)m->stored[of];
        a.linear[i] = linear_of(s, m->bits[of], m->y[of].offset);
        if (i != of) a.linear[i].n_groups = 0;
        groups += a.linear[i].n_groups;
        if (whole) {
            arguments[n++] = (struct opencl_argument)OPENCL_VALUE(s->whole);
            continue;
        }
        for (unsigned bit = 2; bit < 2 + OCL_PLANES; bit++)
            arguments[n++] =
                (struct opencl_argument)OPENCL_VALUE(s->planes[s->planes[bit] ? bit : 2]);
        arguments[n++] = (struct opencl_argument)OPENCL_VALUE(s->groups[m->bits[of]]);
        arguments[n++] = (struct opencl_argument)OPENCL_VALUE(s->rows);
    }
    return make(b, whole ? "step_multiply_whole" : "step_multiply",
                (struct command){NULL, (size_t)OCL_STORED_ROWS * b->d->lanes, groups}, arguments,
                n);
}

static cl_int make_rotate(const struct builder *b, const struct st_program_rotate *r) {
    const struct st_device_attention *shape = &r->shape;
    const struct ocl_step_rotate a = {
        .x = {r->q.offset, r->k.offset, r->v.offset},
        .bias = {r->bias[0].offset, r->bias[1].offset, r->bias[2].offset},
        .norm = {r->norm[0].offset, r->norm[1].offset},
        .has_bias = {r->bias[0].buffer != NULL, r->bias[1].buffer != NULL,
                     r->bias[2].buffer != NULL},
        .has_norm = {r->norm[0].buffer != NULL, r->norm[1].buffer != NULL},
        .per_head = {r->per_head[0], r->per_head[1]},
        .place = r->place.offset,
        .cosine = r->cosine.offset,
        .sine = r->sine.offset,
        .keys = r->keys.offset,
        .values = r->values.offset,
        .key_head = r->keys.row_bytes,
        .value_head = r->values.row_bytes,
        .rows = r->rows.offset,
        .n_heads = shape->n_heads,
        .n_kv = shape->n_kv,
        .dim = shape->dim,
        .half_dims = r->rope_dims / 2,
        .interleaved = r->interleaved,
        .half_floats = shape->type == ST_KV_F16,
        .row_bytes = (ocl_u32)st_kv_row_bytes(shape->type, shape->dim),
        .epsilon = r->epsilon};
    const struct opencl_argument arguments[] = {OPENCL_VALUE(a), OPENCL_VALUE(b->memory),
                                                OPENCL_VALUE(b->cache)};
    return make(
        b, "step_rotate",
        (struct command){NULL, b->d->settings.items, shape->n_heads + 2 * (size_t)shape->n_kv},
        arguments, 3);
}

static cl_int make_attend(const struct builder *b, const struct st_program_attend *p) {
    static const char *const names[ST_N_KV_TYPES] = {
        [ST_KV_F32] = "step_attend_f32", [ST_KV_F16] = "step_attend_f16"};
    const struct ocl_step_attend a = {
        .attention = st_opencl_attention(&p->shape, &p->q, &p->out, &p->keys, &p->values),
        .place = p->place.offset,
        .scores = p->scores.offset,
        .scores_row = p->scores.row_bytes};
    const struct opencl_argument arguments[] = {OPENCL_VALUE(a), OPENCL_VALUE(b->memory),
                                                OPENCL_VALUE(b->cache)};
    return make(b, names[p->shape.type],
                (struct command){NULL, b->d->settings.decode_items, p->shape.n_heads}, arguments,
                3);
}

static cl_int make_command(const struct builder *b, const struct st_program_op *op) {
    switch (op->kind) {
    case ST_PROGRAM_QUANTIZE:
        return make_quantize(b, &op->quantize);
    case ST_PROGRAM_MULTIPLY:
        return make_multiply(b, &op->multiply);
    case ST_PROGRAM_ROTATE:
        return make_rotate(b, &op->rotate);
    case ST_PROGRAM_ATTEND:
        return make_attend(b, &op->attend);
    }
    return CL_INVALID_VALUE;
}

// ---- Programs

stint_status st_opencl_compile_program(struct st_device *device,
                                       const struct st_program_options *options,
                                       struct st_program **program) {
    struct opencl_device *d = (struct opencl_device *)device;
    struct opencl_program *p = calloc(1, sizeof *p + options->n_ops * sizeof *p->commands);
    if (!p) return st_fail(STINT_E_NOMEM, "device 'opencl': no memory");
    p->base.device = device;
    struct builder b = {d, ((const struct opencl_buffer *)options->memory)->memory,
                        ((const struct opencl_buffer *)options->cache)->memory, p->commands};
    cl_int error = CL_SUCCESS;
    for (; p->n < options->n_ops && !error; p->n++, b.command++)
        error = make_command(&b, &options->ops[p->n]);
    if (error)
        st_opencl_free_program(&p->base);
    else
        *program = &p->base;
    return st_opencl_status(d, error, "clSetKernelArg");
}

void st_opencl_free_program(struct st_program *program) {
    struct opencl_program *p = (struct opencl_program *)program;
    const struct opencl_device *d = (const struct opencl_device *)program->device;
    for (size_t i = 0; i < p->n; i++)
        if (p->commands[i].kernel) d->cl.clReleaseKernel(p->commands[i].kernel);
    free(p);
}

// Of the last command; the first may be one that is to hang.
static cl_event *event_of(struct opencl_ticket *t) {
    return t->first ? &t->last : &t->first;
}

static cl_int run(struct opencl_ticket *t, const struct opencl_program *p) {
    struct opencl_device *d = t->device;
    for (size_t i = 0; i < p->n; i++) {
        const struct command *c = &p->commands[i];
        const size_t all = c->groups * c->group;
        cl_event *event = i + 1 == p->n ? event_of(t) : NULL;
        TRY(OPENCL_CALL(d, clEnqueueNDRangeKernel, d->programs, c->kernel, 1, NULL, &all, &c->group,
                        0, NULL, event));
    }
    return CL_SUCCESS;
}

// Commands before one that failed still run: something must say when they have ended.
cl_int st_opencl_run_program(struct opencl_ticket *t) {
    struct opencl_device *d = t->device;
    cl_int error = run(t, (const struct opencl_program *)t->job->program);
    if (error &&
        d->cl.clEnqueueBarrierWithWaitList(d->programs, 0, NULL, event_of(t)) != CL_SUCCESS)
        st_device_lose(&d->base, "it does not say when a job ends");
    return error;
}

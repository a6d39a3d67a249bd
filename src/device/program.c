// SPDX-License-Identifier: Apache-2.0
// The arguments of programs: what is the same on every device.
#include "device/program.h"

#include "device/driver.h"

struct check {
    const struct st_device *device;
    const struct st_program_options *options;
};

// One row of so many bytes.
static bool fits(const struct check *c, const struct st_slice *s, size_t bytes, size_t alignment) {
    const struct st_slice row = {s->buffer, s->offset, 0};
    return s->buffer == c->options->memory && st_slice_fits(c->device, &row, 1, bytes, alignment);
}

static bool floats_fit(const struct check *c, const struct st_slice *s, size_t n) {
    return fits(c, s, n * sizeof(float), sizeof(float));
}

static bool are_none_or_fit(const struct check *c, const struct st_slice *s, size_t n) {
    return !s->buffer || floats_fit(c, s, n);
}

static bool input_fits(const struct check *c, const struct st_slice *s, size_t n, size_t terms) {
    return terms >= 1 && terms <= 2 &&
           fits(c, s, st_stored_input_bytes(ST_STORED_NESTED, n, 1, terms), ST_DEVICE_ALIGNMENT);
}

static bool quantize_is_right(const struct check *c, const struct st_program_quantize *q) {
    bool sum = !q->add.buffer || (q->sum.buffer && floats_fit(c, &q->sum, q->n));
    return q->n > 0 && q->n <= UINT32_MAX && floats_fit(c, &q->x, q->n) && sum &&
           are_none_or_fit(c, &q->add, q->n) && are_none_or_fit(c, &q->norm, q->n) &&
           are_none_or_fit(c, &q->up, q->n) && !(q->up.buffer && q->add.buffer) &&
           input_fits(c, &q->to, q->n, q->terms);
}

static bool multiply_is_right(const struct check *c, const struct st_program_multiply *m) {
    if (m->n_parts < 1 || m->n_parts > ST_PROGRAM_PARTS) return false;
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct st_stored_linear *l = &m->stored[i]->linear;
        if (m->stored[i]->device != c->device || l->form != ST_STORED_NESTED ||
            l->n_in != m->stored[0]->linear.n_in || m->bits[i] < l->nested->low ||
            m->bits[i] > l->nested->high || !floats_fit(c, &m->y[i], l->n_out))
            return false;
    }
    return input_fits(c, &m->x, m->stored[0]->linear.n_in, m->terms);
}

static bool place_fits(const struct check *c, const struct st_slice *s) {
    return fits(c, s, sizeof(struct st_program_place), sizeof(uint64_t));
}

static bool cache_fits(const struct check *c, const struct st_device_attention *a,
                       const struct st_slice *rows) {
    size_t bytes, row = st_kv_row_bytes(a->type, a->dim), end;
    if (!st_device_attends_steps(c->device, a) ||
        !st_size_mul(c->options->positions, row, &bytes) ||
        !st_size_add(bytes, (size_t)c->options->caches, &end))
        return false;
    size_t alignment = st_max(1, ST_ATTEND_ALIGNMENT * st_kv_traits[a->type].value_bits / 8);
    return rows->buffer == c->options->cache &&
           st_slice_fits(c->device, rows, a->n_kv, bytes, alignment) &&
           (a->n_kv - 1) * rows->row_bytes + end <= rows->buffer->bytes - rows->offset;
}

static bool rotate_is_right(const struct check *c, const struct st_program_rotate *r) {
    const struct st_device_attention *a = &r->shape;
    const size_t n[] = {a->n_heads * a->dim, a->n_kv * a->dim, a->n_kv * a->dim};
    const struct st_slice *x[] = {&r->q, &r->k, &r->v};
    if (!cache_fits(c, a, &r->keys) || !cache_fits(c, a, &r->values)) return false;
    for (int i = 0; i < 3; i++)
        if (!floats_fit(c, x[i], n[i]) || !are_none_or_fit(c, &r->bias[i], n[i])) return false;
    for (int i = 0; i < 2; i++)
        if (!are_none_or_fit(c, &r->norm[i], r->per_head[i] ? n[i] : a->dim)) return false;
    return place_fits(c, &r->place) && r->rope_dims <= a->dim && r->rope_dims % 2 == 0 &&
           floats_fit(c, &r->cosine, r->rope_dims / 2) &&
           floats_fit(c, &r->sine, r->rope_dims / 2) &&
           fits(c, &r->rows, 2 * a->n_kv * st_kv_row_bytes(a->type, a->dim), sizeof(float));
}

static bool attend_is_right(const struct check *c, const struct st_program_attend *p) {
    const struct st_device_attention *a = &p->shape;
    return cache_fits(c, a, &p->keys) && cache_fits(c, a, &p->values) &&
           fits(c, &p->q, a->n_heads * a->dim * sizeof(float),
                ST_ATTEND_ALIGNMENT * sizeof(float)) &&
           floats_fit(c, &p->out, a->n_heads * a->dim) && place_fits(c, &p->place) &&
           p->scores.buffer == c->options->memory &&
           st_slice_fits(c->device, &p->scores, a->n_heads, c->options->positions * sizeof(float),
                         sizeof(float));
}

static bool is_right(const struct check *c, const struct st_program_op *op) {
    switch (op->kind) {
    case ST_PROGRAM_QUANTIZE:
        return quantize_is_right(c, &op->quantize);
    case ST_PROGRAM_MULTIPLY:
        return multiply_is_right(c, &op->multiply);
    case ST_PROGRAM_ROTATE:
        return rotate_is_right(c, &op->rotate);
    case ST_PROGRAM_ATTEND:
        return attend_is_right(c, &op->attend);
    }
    return false;
}

bool st_device_attends_steps(const struct st_device *device, const struct st_device_attention *a) {
    return device->caps.programs && st_device_attention_is_well_formed(a) &&
           device->ops->attends_steps(device, a);
}

stint_status st_device_compile_program(struct st_device *device,
                                       const struct st_program_options *options,
                                       struct st_program **program) {
    const struct check check = {device, options};
    ST_TRY(st_device_check(device));
    if (!device->caps.programs)
        return st_fail(STINT_E_UNSUPPORTED, "device '%s': it runs no programs", device->ops->name);
    if (options->positions > INT32_MAX) return st_device_broken(device, "too many positions");
    for (size_t i = 0; i < options->n_ops; i++)
        if (!is_right(&check, &options->ops[i]))
            return st_device_broken(device, "an operation of a program is wrong");
    struct st_program *p = NULL;
    ST_TRY(device->ops->compile_program(device, options, &p));
    p->device = device;
    *program = p;
    return STINT_OK;
}

void st_device_free_program(struct st_program *program) {
    if (program) program->device->ops->free_program(program);
}

stint_status st_device_run_program(struct st_program *program, struct st_job **job) {
    return st_job_start(program->device, ST_JOB_PROGRAM, program, NULL, NULL, 0, job);
}

// SPDX-License-Identifier: Apache-2.0
// Programs on devices that run them: an input is normalised, activated and quantized, and a query
// attends, with the bits of the host; operations that break a rule are refused. What is between
// them is compared in session/test_device_step.c, of whole models.
#include "base/cpu.h"
#include "device/driver.h"
#include "kernels/attention.h"
#include "kernels/nested.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PROGRAMS "opencl:decode=1"

enum { ROUNDS = 40, MOST = 700, POSITIONS = 160, MAX_DIM = 112, ROOM = 512 << 10 };

static struct st_device *open_or_skip(void) {
    struct st_device *device = NULL;
    const struct st_device_options options = {.name = PROGRAMS};
    if (st_device_open(&options, &device) == STINT_OK && device->caps.programs) return device;
    st_device_close(device);
    print_message("no device runs programs here: scripts/bootstrap opencl\n");
    skip();
    return NULL;
}

// Everything in one buffer, as the host has it and as the device does.
struct memory {
    struct st_buffer *buffer;
    unsigned char host[ROOM];
    size_t used;
};

static struct memory *open_memory(struct st_device *device) {
    struct memory *m = calloc(1, sizeof *m);
    assert_int_equal(st_buffer_allocate(device, ROOM, &m->buffer), STINT_OK);
    return m;
}

static void close_all(struct memory *m, struct st_device *device) {
    st_buffer_free(m->buffer);
    st_device_close(device);
    free(m);
}

static struct st_slice put(struct memory *m, size_t bytes) {
    struct st_slice s = {.buffer = m->buffer, .offset = m->used};
    m->used = st_round_up(m->used + bytes, ST_DEVICE_ALIGNMENT);
    assert_true(m->used <= ROOM);
    return s;
}

static float *floats_of(struct memory *m, struct st_slice s) {
    return (float *)(void *)(m->host + s.offset);
}

static struct st_slice put_floats(struct memory *m, size_t n) {
    struct st_slice s = put(m, n * sizeof(float));
    for (size_t i = 0; i < n; i++) floats_of(m, s)[i] = ts_random_float(-2.0f, 2.0f);
    return s;
}

static void move(struct memory *m, unsigned how, void *device_content) {
    struct st_mapping map;
    assert_int_equal(st_buffer_map(m->buffer, 0, ROOM, how, &map), STINT_OK);
    if (how == ST_MAP_WRITE)
        memcpy(map.data, m->host, ROOM);
    else
        memcpy(device_content, map.data, ROOM);
    assert_int_equal(st_buffer_unmap(&map), STINT_OK);
}

static stint_status compile(struct st_device *device, struct memory *m,
                            const struct st_program_op *op, struct st_program **program) {
    const struct st_program_options o = {
        .ops = op, .n_ops = 1, .memory = m->buffer, .cache = m->buffer, .positions = POSITIONS};
    return st_device_compile_program(device, &o, program);
}

static void run(struct st_device *device, struct memory *m, const struct st_program_op *op) {
    struct st_program *program;
    struct st_job *job;
    assert_int_equal(compile(device, m, op, &program), STINT_OK);
    assert_int_equal(st_device_run_program(program, &job), STINT_OK);
    assert_int_equal(st_job_join(job, NULL), STINT_OK);
    st_device_free_program(program);
}

// What the host makes of x, in place.
static void prepare(struct memory *m, const struct st_program_quantize *q, float *x) {
    const struct st_elementwise *k = st_elementwise_select(st_cpu_flags());
    memcpy(x, floats_of(m, q->x), q->n * sizeof *x);
    if (q->add.buffer) {
        k->add(floats_of(m, q->add), q->n, x);
        memcpy(floats_of(m, q->sum), x, q->n * sizeof *x);
    }
    if (q->norm.buffer) k->rmsnorm(x, floats_of(m, q->norm), q->epsilon, q->n, x);
    if (q->up.buffer) k->act_gated(q->act, x, floats_of(m, q->up), q->n, x);
}

static void quantize(struct memory *m, const struct st_program_quantize *q) {
    const struct st_nested_kernel *k = st_nested_select(st_cpu_flags());
    const struct st_stored_nested parts = st_stored_nested(q->n, q->terms);
    unsigned char *to = m->host + q->to.offset;
    struct st_nested_input input = {.q = (int8_t *)to,
                                    .scale = (float *)(void *)(to + parts.scale),
                                    .sums = (int16_t *)(void *)(to + parts.sums),
                                    .n_tokens = q->terms,
                                    .terms = q->terms};
    float x[MOST];
    prepare(m, q, x);
    st_nested_quantize(k, x, q->n, 0, &input);
    if (q->terms == 2) st_nested_quantize_rest(k, x, q->n, 0, 1, &input);
}

static struct st_program_op random_quantize(struct memory *m) {
    const size_t n = 1 + ts_random_below(MOST);
    struct st_program_quantize q = {.n = n, .terms = 1 + ts_random_below(2), .epsilon = 1e-5f};
    q.x = put_floats(m, n);
    if (ts_random_below(2)) {
        q.add = put_floats(m, n);
        q.sum = put(m, n * sizeof(float));
    } else if (ts_random_below(2)) {
        q.up = put_floats(m, n);
        q.act = (enum st_act)ts_random_below(2);
    }
    if (ts_random_below(3)) q.norm = put_floats(m, n);
    q.to = put(m, st_stored_input_bytes(ST_STORED_NESTED, n, 1, q.terms));
    return (struct st_program_op){.kind = ST_PROGRAM_QUANTIZE, .quantize = q};
}

static void inputs_have_the_bits_of_the_host(void **state) {
    (void)state;
    struct st_device *device = open_or_skip();
    struct memory *m = open_memory(device);
    unsigned char *got = malloc(ROOM);
    for (int round = 0; round < ROUNDS; round++) {
        memset(m->host, 0, ROOM);
        m->used = 0;
        const struct st_program_op op = random_quantize(m);
        move(m, ST_MAP_WRITE, NULL);
        run(device, m, &op);
        quantize(m, &op.quantize);
        move(m, ST_MAP_READ, got);
        assert_memory_equal(got, m->host, ROOM);
    }
    close_all(m, device);
    free(got);
}

// ---- Attention

static const struct st_kv_kernel *kv_kernel(const struct st_device_attention *a) {
    return &st_attention_select(st_cpu_flags())->kv[a->type];
}

// Of all key-value heads, row_bytes apart.
static struct st_slice put_cache(struct memory *m, const struct st_device_attention *a) {
    const size_t row = st_kv_row_bytes(a->type, a->dim);
    struct st_slice s = put(m, a->n_kv * POSITIONS * row);
    s.row_bytes = POSITIONS * row;
    for (size_t i = 0; i < (size_t)a->n_kv * POSITIONS; i++) {
        float values[MAX_DIM];
        for (size_t d = 0; d < a->dim; d++) values[d] = ts_random_float(-2.0f, 2.0f);
        kv_kernel(a)->store(values, a->dim, m->host + s.offset + i * row);
    }
    return s;
}

static struct st_program_op random_attend(struct memory *m, uint32_t position) {
    const uint32_t n_kv = 1 + (uint32_t)ts_random_below(2);
    const struct st_device_attention shape = {
        .type = ts_random_below(2) ? ST_KV_F32 : ST_KV_F16,
        .n_heads = n_kv * (1 + (uint32_t)ts_random_below(2)),
        .n_kv = n_kv,
        .dim = 4 + 4 * (uint32_t)ts_random_below(MAX_DIM / 4),
        .window = ts_random_below(3) ? 0 : 1 + (uint32_t)ts_random_below(POSITIONS),
        .scale = 0.2f,
        .softcap = ts_random_below(3) ? 0.0f : 20.0f};
    struct st_program_attend p = {.shape = shape};
    const struct st_program_place place = {.position = position};
    p.q = put_floats(m, (size_t)shape.n_heads * shape.dim);
    p.out = put(m, (size_t)shape.n_heads * shape.dim * sizeof(float));
    p.place = put(m, sizeof place);
    memcpy(m->host + p.place.offset, &place, sizeof place);
    p.keys = put_cache(m, &shape);
    p.values = put_cache(m, &shape);
    p.scores = put(m, shape.n_heads * POSITIONS * sizeof(float));
    p.scores.row_bytes = POSITIONS * sizeof(float);
    return (struct st_program_op){.kind = ST_PROGRAM_ATTEND, .attend = p};
}

static void attend(struct memory *m, const struct st_program_attend *p, uint32_t position) {
    const struct st_device_attention *a = &p->shape;
    const uint32_t first = a->window && position + 1 > a->window ? position + 1 - a->window : 0;
    float scores[POSITIONS];
    for (size_t h = 0; h < a->n_heads; h++) {
        const size_t of = h / (a->n_heads / a->n_kv) * p->keys.row_bytes;
        const struct st_kv_rows rows = {m->host + p->keys.offset + of,
                                        m->host + p->values.offset + of,
                                        first,
                                        POSITIONS,
                                        0,
                                        NULL};
        float *out = floats_of(m, p->out) + h * a->dim;
        struct st_attended attended;
        kv_kernel(a)->decode(floats_of(m, p->q) + h * a->dim, 1, &rows, position + 1 - first,
                             a->dim, a->scale, a->softcap, false, scores, &attended, out);
        st_attended_end(&attended, a->dim, out);
    }
}

static void queries_have_the_bits_of_the_host(void **state) {
    (void)state;
    struct st_device *device = open_or_skip();
    struct memory *m = open_memory(device);
    unsigned char *got = malloc(ROOM);
    for (int round = 0; round < ROUNDS; round++) {
        const uint32_t position = (uint32_t)ts_random_below(POSITIONS);
        m->used = 0;
        const struct st_program_op op = random_attend(m, position);
        const struct st_program_attend *p = &op.attend;
        move(m, ST_MAP_WRITE, NULL);
        run(device, m, &op);
        attend(m, p, position);
        move(m, ST_MAP_READ, got);
        assert_memory_equal(got + p->out.offset, m->host + p->out.offset,
                            (size_t)p->shape.n_heads * p->shape.dim * sizeof(float));
    }
    close_all(m, device);
    free(got);
}

static void what_breaks_a_rule_is_refused(void **state) {
    (void)state;
    struct st_device *device = open_or_skip();
    struct memory *m = open_memory(device);
    struct st_program *program = NULL;
    struct st_program_quantize right = {.n = 64, .terms = 1, .x = put_floats(m, 64)};
    right.to = put(m, st_stored_input_bytes(ST_STORED_NESTED, 64, 1, 2));
    struct st_program_quantize wrong[7];
    for (int i = 0; i < 7; i++) wrong[i] = right;
    wrong[0].n = 0;
    wrong[1].terms = 3;
    wrong[2].x.buffer = NULL;
    wrong[3].to.offset = ROOM - 64;
    wrong[4].to.offset += 4;
    wrong[5].add = right.x; // and no place for the sum
    wrong[6].norm = (struct st_slice){.buffer = m->buffer, .offset = ROOM - 4};
    for (int i = 0; i < 7; i++) {
        const struct st_program_op op = {.kind = ST_PROGRAM_QUANTIZE, .quantize = wrong[i]};
        assert_int_equal(compile(device, m, &op, &program), STINT_E_INTERNAL);
    }
    const struct st_program_op no_linears = {.kind = ST_PROGRAM_MULTIPLY};
    assert_int_equal(compile(device, m, &no_linears, &program), STINT_E_INTERNAL);
    const struct st_program_op no_shape[] = {{.kind = ST_PROGRAM_ROTATE},
                                             {.kind = ST_PROGRAM_ATTEND}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(compile(device, m, &no_shape[i], &program), STINT_E_INTERNAL);
    assert_null(program);
    close_all(m, device);
}

static void other_devices_run_none(void **state) {
    (void)state;
    struct st_device *device;
    struct st_program *program = NULL;
    const struct st_device_options options = {.name = "sim"};
    const struct st_program_options none = {.n_ops = 0};
    assert_int_equal(st_device_open(&options, &device), STINT_OK);
    assert_int_equal(st_device_compile_program(device, &none, &program), STINT_E_UNSUPPORTED);
    st_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_have_the_bits_of_the_host),
        cmocka_unit_test(queries_have_the_bits_of_the_host),
        cmocka_unit_test(what_breaks_a_rule_is_refused),
        cmocka_unit_test(other_devices_run_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Attention of prompts on devices that compute it (device/attention.h): what the definition says,
// with the bits of the host's softmax and of one multiply-add after the other.
#include "base/cpu.h"
#include "base/thread.h"
#include "device/driver.h"
#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/tile.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { PAGE = 4096, MAX_FAULTS = 120, ROOM = 3 }; // rows behind the last key

static const char *const ways[] = {"opencl:attention=1", "opencl:attention=1,copy=1,steps=1",
                                   "opencl:attention=1,items=3"};
enum { N_WAYS = sizeof ways / sizeof *ways };

struct problem {
    struct st_device_attention shape;
    size_t position, n, n_rows, row_bytes;
    float *q, *wanted;
    unsigned char *cache; // keys, then values: [n_kv, n_rows]
    size_t cache_bytes;
};

static stint_status open_with(const char *name, struct st_device **device) {
    const struct st_device_options options = {.name = name};
    return st_device_open(&options, device);
}

static void skip_without(void) {
    struct st_device *device = NULL;
    bool here = open_with("opencl", &device) == STINT_OK;
    st_device_close(device);
    if (!here) print_message("OpenCL finds no device: scripts/bootstrap opencl\n");
    if (!here || st_elementwise_select(st_cpu_flags())->isa == 0) skip();
}

static unsigned char *row_of(const struct problem *p, bool value, size_t head, size_t position) {
    return p->cache + (((value ? p->shape.n_kv : 0) + head) * p->n_rows + position) * p->row_bytes;
}

static const struct st_kv_kernel *kernel_of(const struct problem *p) {
    return &st_attention_select(st_cpu_flags())->kv[p->shape.type];
}

static size_t first_key(const struct problem *p, size_t position) {
    size_t window = p->shape.window;
    return window && position + 1 > window ? position + 1 - window : 0;
}

// ---- The host's result

// One query in the first of a vector's lanes.
static void attend_as_the_host(const struct problem *p, size_t t, size_t h, float *out) {
    enum { TILE = ST_DEVICE_KEY_TILE };
    const struct st_attention *a = st_attention_select(st_cpu_flags());
    const struct st_device_attention *s = &p->shape;
    size_t lanes = st_tile_select(st_cpu_flags())->lanes, kv = h / (s->n_heads / s->n_kv);
    int32_t low[ST_TILE_MAX_WIDTH] = {0}, high[ST_TILE_MAX_WIDTH] = {0};
    float maximum[ST_TILE_MAX_WIDTH], sum[ST_TILE_MAX_WIDTH], factor[ST_TILE_MAX_WIDTH];
    float *scores = malloc(TILE * lanes * sizeof *scores), *row = malloc(s->dim * sizeof *row);
    const float *q = p->q + (t * s->n_heads + h) * s->dim;
    size_t end = p->position + t + 1;
    low[0] = (int32_t)first_key(p, end - 1);
    high[0] = (int32_t)end;
    for (size_t l = 0; l < lanes; l++) maximum[l] = -INFINITY, sum[l] = 0.0f;
    memset(out, 0, s->dim * sizeof *out);
    for (size_t key0 = (size_t)low[0] / TILE * TILE; key0 < end; key0 += TILE) {
        size_t n = st_min(TILE, end - key0);
        memset(scores, 0, TILE * lanes * sizeof *scores);
        for (size_t j = 0; j < n; j++) {
            kernel_of(p)->load(row_of(p, false, kv, key0 + j), 1, s->dim, row);
            for (size_t d = 0; d < s->dim; d++)
                scores[j * lanes] = fmaf(row[d], q[d], scores[j * lanes]);
        }
        a->softmax_tile(scores, n, lanes, (int32_t)key0, low, high, s->scale, s->softcap, maximum,
                        sum, factor);
        for (size_t d = 0; d < s->dim; d++) out[d] *= factor[0];
        for (size_t j = 0; j < n; j++) {
            kernel_of(p)->load(row_of(p, true, kv, key0 + j), 1, s->dim, row);
            for (size_t d = 0; d < s->dim; d++) out[d] = fmaf(row[d], scores[j * lanes], out[d]);
        }
    }
    for (size_t d = 0; d < s->dim; d++) out[d] *= 1.0f / sum[0];
    free(scores);
    free(row);
}

// The same by the definition.
static void expect_the_definition(const struct problem *p, size_t t, size_t h, const float *out) {
    const struct st_device_attention *s = &p->shape;
    size_t end = p->position + t + 1, first = first_key(p, end - 1);
    size_t kv = h / (s->n_heads / s->n_kv);
    const struct st_kv_rows rows = {
        row_of(p, false, kv, first), row_of(p, true, kv, first), 0, end - first, 0, NULL};
    struct st_attended attended;
    float *scores = malloc((end - first) * sizeof *scores), *y = malloc(s->dim * sizeof *y);
    st_attention_select(0)->kv[s->type].decode(p->q + (t * s->n_heads + h) * s->dim, 1, &rows,
                                               end - first, s->dim, s->scale, s->softcap, false,
                                               scores, &attended, y);
    st_attended_end(&attended, s->dim, y);
    for (size_t d = 0; d < s->dim; d++)
        if (!(fabsf(out[d] - y[d]) < 2e-5f)) fail_msg("%g, not %g", out[d], y[d]);
    free(scores);
    free(y);
}

// ---- Problems

// Behind the last key there is what no result may depend on.
static void fill_cache(struct problem *p) {
    size_t dim = p->shape.dim, used = p->position + p->n;
    float *row = malloc(dim * sizeof *row);
    for (size_t h = 0; h < 2 * (size_t)p->shape.n_kv; h++)
        for (size_t j = 0; j < p->n_rows; j++) {
            for (size_t d = 0; d < dim; d++) row[d] = j < used ? ts_random_float(-2.0f, 2.0f) : NAN;
            kernel_of(p)->store(row, dim, p->cache + (h * p->n_rows + j) * p->row_bytes);
        }
    free(row);
}

static struct problem make(struct st_device_attention shape, size_t position, size_t n) {
    struct problem p = {.shape = shape, .position = position, .n = n};
    size_t queries = n * shape.n_heads * shape.dim;
    p.n_rows = position + n + ROOM;
    p.row_bytes = st_kv_row_bytes(shape.type, shape.dim);
    p.cache_bytes = 2 * shape.n_kv * p.n_rows * p.row_bytes;
    p.cache = aligned_alloc(PAGE, st_round_up(p.cache_bytes, PAGE));
    p.q = malloc(queries * sizeof *p.q);
    p.wanted = malloc(queries * sizeof *p.wanted);
    for (size_t i = 0; i < queries; i++) p.q[i] = ts_random_float(-2.0f, 2.0f);
    fill_cache(&p);
    for (size_t t = 0; t < n; t++)
        for (size_t h = 0; h < shape.n_heads; h++) {
            float *out = p.wanted + (t * shape.n_heads + h) * shape.dim;
            attend_as_the_host(&p, t, h, out);
            expect_the_definition(&p, t, h, out);
        }
    return p;
}

static struct problem make_random(int i) {
    static const uint32_t dims[] = {4, 64, 80, 128, 256, 20};
    struct st_device_attention shape = {.type = i % 2 ? ST_KV_F16 : ST_KV_F32,
                                        .n_kv = 1 + (uint32_t)ts_random_below(3),
                                        .dim = dims[i % 6],
                                        .softcap = i % 5 == 4 ? 3.0f : 0.0f};
    shape.n_heads = shape.n_kv * (1 + (uint32_t)ts_random_below(4));
    shape.scale = 1.0f / sqrtf((float)shape.dim);
    if (i % 3 == 2) shape.window = 1 + (uint32_t)ts_random_below(100);
    return make(shape, i % 4 ? ts_random_below(200) : 0, 1 + ts_random_below(20));
}

static void drop(struct problem *p) {
    free(p->cache);
    free(p->q);
    free(p->wanted);
}

// ---- Jobs

struct bench {
    struct st_buffer *cache, *rows; // the queries, then what they attend to
    struct st_attend_args args;
};

static stint_status tell(struct st_buffer *buffer, size_t offset, size_t bytes, const void *data) {
    struct st_mapping map;
    ST_TRY(st_buffer_map(buffer, offset, bytes, ST_MAP_WRITE, &map));
    if (data) memcpy(map.data, data, bytes);
    return st_buffer_unmap(&map);
}

static size_t query_bytes(const struct problem *p) {
    return p->n * p->shape.n_heads * p->shape.dim * sizeof(float);
}

static stint_status bench_open(struct st_device *device, const struct problem *p, struct bench *b) {
    size_t row = p->shape.n_heads * p->shape.dim * sizeof(float), bytes = query_bytes(p);
    *b = (struct bench){0};
    ST_TRY(st_buffer_borrow(device, p->cache, p->cache_bytes, &b->cache));
    ST_TRY(st_buffer_allocate(device, 2 * bytes, &b->rows));
    ST_TRY(tell(b->cache, 0, p->cache_bytes, NULL));
    ST_TRY(tell(b->rows, 0, bytes, p->q));
    b->args = (struct st_attend_args){
        .shape = p->shape,
        .q = {b->rows, 0, row},
        .out = {b->rows, bytes, row},
        .keys = {b->cache, 0, p->n_rows * p->row_bytes},
        .values = {b->cache, p->shape.n_kv * p->n_rows * p->row_bytes, p->n_rows * p->row_bytes},
        .position = p->position,
        .n = p->n};
    return STINT_OK;
}

static void bench_close(struct bench *b) {
    st_buffer_free(b->cache);
    st_buffer_free(b->rows);
}

static stint_status run(struct st_device *device, const struct problem *p, struct bench *b) {
    struct st_job *job;
    struct st_mapping map;
    ST_TRY(st_device_attend(device, &b->args, NULL, 0, &job));
    ST_TRY(st_job_join(job, NULL));
    ST_TRY(st_buffer_map(b->rows, query_bytes(p), query_bytes(p), ST_MAP_READ, &map));
    bool same = memcmp(map.data, p->wanted, query_bytes(p)) == 0;
    ST_TRY(st_buffer_unmap(&map));
    if (!same) fail_msg("other bits than the host's");
    return STINT_OK;
}

static stint_status attend(struct st_device *device, const struct problem *p) {
    struct bench b;
    stint_status status = bench_open(device, p, &b);
    if (status == STINT_OK) status = run(device, p, &b);
    bench_close(&b);
    return status;
}

static void prompts_have_the_bits_of_the_host(void **state) {
    (void)state;
    skip_without();
    for (int w = 0; w < N_WAYS; w++) {
        struct st_device *device;
        if (open_with(ways[w], &device) != STINT_OK) fail_msg("%s", st_error_text());
        for (int i = 0; i < 24; i++) {
            struct problem p = make_random(i);
            if (attend(device, &p) != STINT_OK) fail_msg("%s: %s", ways[w], st_error_text());
            drop(&p);
        }
        st_device_close(device);
    }
}

// What the host writes later is known once it is mapped and unmapped.
static void the_cache_stays_where_it_is(void **state) {
    (void)state;
    skip_without();
    for (int w = 0; w < N_WAYS; w++) {
        struct st_device *device;
        struct bench b;
        struct problem p = make_random(1), next = make(p.shape, p.position, p.n);
        struct st_mapping map;
        assert_int_equal(open_with(ways[w], &device), STINT_OK);
        uint64_t before = st_device_used_bytes(device);
        assert_int_equal(bench_open(device, &p, &b), STINT_OK);
        bool in_place = st_device_caps(device)->reads_host;
        assert_int_equal(st_device_used_bytes(device) - before,
                         2 * query_bytes(&p) + (in_place ? 0 : p.cache_bytes));
        assert_int_equal(run(device, &p, &b), STINT_OK);
        assert_int_equal(st_buffer_map(b.cache, 0, p.cache_bytes, ST_MAP_WRITE, &map), STINT_OK);
        assert_ptr_equal(map.data, p.cache);
        memcpy(p.cache, next.cache, p.cache_bytes);
        assert_int_equal(st_buffer_unmap(&map), STINT_OK);
        assert_int_equal(tell(b.rows, 0, query_bytes(&p), next.q), STINT_OK);
        assert_int_equal(run(device, &next, &b), STINT_OK);
        bench_close(&b);
        assert_int_equal(st_device_used_bytes(device), before);
        st_device_close(device);
        drop(&p);
        drop(&next);
    }
}

// ---- Refusals

static void what_a_device_cannot_do_stays_on_the_host(void **state) {
    (void)state;
    const struct st_device_attention plain = {.n_heads = 4, .n_kv = 2, .dim = 64, .scale = 1.0f};
    for (size_t i = 0; st_devices[i]; i++) {
        struct st_device_options options = {.name = st_devices[i]->name};
        struct st_device *device;
        struct st_buffer *buffer;
        if (!st_devices[i]->present()) continue;
        assert_int_equal(st_pool_open(1, &options.workers), STINT_OK);
        assert_int_equal(st_device_open(&options, &device), STINT_OK);
        if (!st_devices[i]->attends) {
            struct st_attend_args args = {.shape = plain};
            struct st_job *job;
            assert_false(st_device_attends(device, &plain));
            assert_int_equal(st_device_attend(device, &args, NULL, 0, &job), STINT_E_UNSUPPORTED);
            assert_int_equal(st_buffer_borrow(device, &args, sizeof args, &buffer),
                             STINT_E_UNSUPPORTED);
        }
        st_device_close(device);
        st_pool_close(options.workers);
    }
}

static void shapes_and_arguments_are_checked(void **state) {
    (void)state;
    skip_without();
    struct st_device *device;
    struct st_job *job;
    struct bench b;
    const struct st_device_attention plain = {.n_heads = 4, .n_kv = 2, .dim = 64, .scale = 1.0f};
    struct problem p = make(plain, 70, 5);
    assert_int_equal(open_with("opencl:attention=0", &device), STINT_OK);
    assert_false(st_device_attends(device, &plain));
    st_device_close(device);
    assert_int_equal(open_with(ways[0], &device), STINT_OK);
    struct st_device_attention bad[] = {plain, plain, plain, plain, plain};
    bad[0].type = ST_KV_Q8;
    bad[1].dim = 66;
    bad[2].n_kv = 3;
    bad[3].softcap = -1.0f;
    bad[4].dim = 1 << 20; // of local memory
    assert_true(st_device_attends(device, &plain));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(st_device_attends(device, &bad[i]));
    assert_int_equal(bench_open(device, &p, &b), STINT_OK);
    struct st_attend_args outside[] = {b.args, b.args, b.args, b.args};
    outside[0].q.offset = st_buffer_bytes(b.rows);
    outside[1].out.buffer = NULL;
    outside[2].keys.row_bytes -= (ROOM + 1) * p.row_bytes;
    outside[3].values.offset += (ROOM + 1) * p.row_bytes;
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        assert_int_equal(st_device_attend(device, &outside[i], NULL, 0, &job), STINT_E_INTERNAL);
    bench_close(&b);
    st_device_close(device);
    drop(&p);
}

// ---- Failures

// True if the call that was to fail was never made.
static bool meets_fault(const char *fault, int n, const struct problem *p) {
    char name[64];
    struct st_device *device = NULL;
    snprintf(name, sizeof name, "%s,%s=%d", ways[0], fault, n);
    stint_status status = open_with(name, &device);
    bool opened = status == STINT_OK;
    if (opened) status = attend(device, p);
    if (status != STINT_OK) assert_non_null(strstr(st_error_text(), "device 'opencl'"));
    st_device_close(device);
    return opened && status == STINT_OK;
}

static void every_call_may_fail(void **state) {
    (void)state;
    skip_without();
    struct problem p = make_random(1);
    int n = 1, first = 60;
    while (!meets_fault("error", n, &p)) assert_true(++n < MAX_FAULTS);
    assert_true(n > first);
    for (n = 1; !meets_fault("lose", n, &p); n += 5) assert_true(n < MAX_FAULTS);
    drop(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_have_the_bits_of_the_host),
        cmocka_unit_test(the_cache_stays_where_it_is),
        cmocka_unit_test(what_a_device_cannot_do_stays_on_the_host),
        cmocka_unit_test(shapes_and_arguments_are_checked),
        cmocka_unit_test(every_call_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

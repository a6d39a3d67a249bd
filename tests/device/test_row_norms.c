// SPDX-License-Identifier: Apache-2.0
// Inputs that a device normalises before it quantizes them (device/device.h): the host's bits, or
// a refusal.
#include "base/cpu.h"
#include "device/driver.h"
#include "support/device_cases.h"
#include "support/support.h"

#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const float epsilon = 1e-5f;

struct normed {
    struct st_buffer *buffer; // the weights, then the rows
    struct st_quantize_args args;
};

static struct normed normed_open(const struct ts_bench *b, const float *weight) {
    struct normed n = {.args = ts_bench_quantize_args(b)};
    size_t row = n.args.n * sizeof(float);
    struct st_mapping map;
    assert_int_equal(st_buffer_allocate(b->device, (1 + n.args.n_rows) * row, &n.buffer), STINT_OK);
    assert_int_equal(st_buffer_map(n.buffer, 0, row, ST_MAP_WRITE, &map), STINT_OK);
    memcpy(map.data, weight, row);
    assert_int_equal(st_buffer_unmap(&map), STINT_OK);
    n.args.norm = (struct st_slice){n.buffer, 0, 0};
    n.args.normed = (struct st_slice){n.buffer, row, row};
    n.args.norm_epsilon = epsilon;
    return n;
}

static void expect_rows(const struct normed *n, const float *wanted) {
    size_t row = n->args.n * sizeof(float), all = n->args.n_rows * row;
    struct st_mapping map;
    assert_int_equal(st_buffer_map(n->buffer, row, all, ST_MAP_READ, &map), STINT_OK);
    assert_memory_equal(map.data, wanted, all);
    assert_int_equal(st_buffer_unmap(&map), STINT_OK);
}

static void expect_refused(struct st_device *device, const struct st_quantize_args *args) {
    struct st_job *job = NULL;
    assert_int_equal(st_device_quantize(device, args, NULL, 0, &job), STINT_E_INTERNAL);
    assert_null(job);
}

static void refuse_slices(struct st_device *device, const struct normed *n) {
    struct st_quantize_args bad = n->args;
    bad.norm.offset = st_buffer_bytes(n->buffer);
    expect_refused(device, &bad);
    bad = n->args;
    bad.normed.offset += sizeof(float);
    expect_refused(device, &bad);
    bad = n->args;
    bad.normed.buffer = NULL;
    expect_refused(device, &bad);
}

// The graph that follows finds what it would find if the host had computed the norm.
static void check(struct st_device *device, const struct ts_case_options *options) {
    const struct st_elementwise *k = st_elementwise_select(st_cpu_flags());
    struct ts_case c = ts_case_make(options);
    size_t n = options->n_in, bytes = c.n_rows * n * sizeof(float);
    float *x = malloc(bytes), *weight = malloc(n * sizeof *weight);
    struct ts_bench b;
    struct st_job *job;
    struct st_job_result done;
    assert_true(x && weight);
    memcpy(x, c.x, bytes);
    for (size_t i = 0; i < n; i++) weight[i] = ts_random_float(0.5f, 1.5f);
    for (size_t t = 0; t < c.n_rows; t++)
        k->rmsnorm(x + t * n, weight, epsilon, n, c.x + t * n); // which the bench begins with
    struct ts_result expected = ts_case_expect(&c), got;
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    struct normed normed = normed_open(&b, weight);
    if (!st_device_caps(device)->row_norms) {
        expect_refused(device, &normed.args);
    } else {
        refuse_slices(device, &normed);
        assert_int_equal(ts_bench_run(&b, &got), STINT_OK);
        ts_result_compare(&c, &expected, &got, st_device_caps(device)->name);
        ts_result_drop(&c, &got);
        for (size_t t = 0; t < c.n_rows; t++) memcpy(b.x + t * b.x_row, x + t * n, n * sizeof *x);
        assert_int_equal(st_mirror_push(&b.mirror, b.x, c.n_rows * b.x_row * sizeof *x), STINT_OK);
        assert_int_equal(st_device_quantize(device, &normed.args, NULL, 0, &job), STINT_OK);
        assert_int_equal(st_job_join(job, &done), STINT_OK);
        assert_int_equal(done.n_clipped, expected.clipped_in);
        expect_rows(&normed, c.x);
        const struct st_graph_args args = ts_bench_graph_args(&b);
        assert_int_equal(st_device_submit(b.graph, &args, NULL, 0, &job), STINT_OK);
        assert_int_equal(st_job_join(job, NULL), STINT_OK);
        for (size_t t = 0; t < c.n_rows; t++) {
            const float *row = b.out[0] + t * b.out_row[0];
            assert_int_equal(st_mirror_pull(&b.mirror, b.out[0] + t * b.out_row[0],
                                            options->rows[0] * sizeof *row),
                             STINT_OK);
            assert_memory_equal(row, expected.out[0] + t * options->rows[0],
                                options->rows[0] * sizeof *row);
        }
    }
    st_buffer_free(normed.buffer);
    ts_bench_close(&b);
    ts_result_drop(&c, &expected);
    ts_case_drop(&c);
    free(x);
    free(weight);
}

static void devices_have_the_hosts_bits_or_refuse(void **state) {
    (void)state;
    for (size_t i = 0; st_devices[i]; i++) {
        struct st_device_options options = {.name = st_devices[i]->name};
        struct st_device *device;
        if (!st_devices[i]->present()) continue;
        assert_int_equal(st_pool_open(2, &options.workers), STINT_OK);
        assert_int_equal(st_device_open(&options, &device), STINT_OK);
        for (uint32_t j = 0; j < 12; j++) {
            struct ts_case_options o = {.n_rows = 1 + ts_random_below(9),
                                        .n_in = j < 2 ? 1 + j : 1 + (uint32_t)ts_random_below(300),
                                        .n_parts = 1,
                                        .rows = {1 + (uint32_t)ts_random_below(70)},
                                        .two_term = j % 3 == 2,
                                        .lists = j % 2};
            o.row_scales[0] = st_device_caps(device)->row_scales && j % 4 == 0;
            check(device, &o);
        }
        st_device_close(device);
        st_pool_close(options.workers);
    }
}

static void who_adds_in_the_hosts_order_says_so(void **state) {
    (void)state;
    bool lanes = st_elementwise_select(st_cpu_flags())->sum_lanes > 0;
    const char *const names[] = {"sim", "hexagon", "hexagon:host_norms=1", "opencl",
                                 "opencl:host_norms=1"};
    const bool has[] = {true, lanes, false, lanes, false};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct st_device_options options = {.name = names[i]};
        struct st_device *device;
        if (st_device_open(&options, &device) != STINT_OK) continue; // this machine has none
        assert_int_equal(st_device_caps(device)->row_norms, has[i]);
        st_device_close(device);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(devices_have_the_hosts_bits_or_refuse),
                                       cmocka_unit_test(who_adds_in_the_hosts_order_says_so)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

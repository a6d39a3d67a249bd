// SPDX-License-Identifier: Apache-2.0
// What every device must do (device/device.h), on all that are here.
#include "device/driver.h"
#include "support/device_cases.h"
#include "support/support.h"

#include "base/thread.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct opened {
    struct st_pool *workers;
    struct st_device *device;
};

static struct opened open_with(const struct st_device_options *wanted, size_t n_threads) {
    struct opened o;
    struct st_device_options options = *wanted;
    assert_int_equal(st_pool_open(n_threads, &o.workers), STINT_OK);
    options.workers = o.workers;
    if (st_device_open(&options, &o.device) != STINT_OK) fail_msg("%s", st_error_text());
    return o;
}

static struct opened open_named(const char *name) {
    return open_with(&(struct st_device_options){.name = name}, 1 + ts_random_below(3));
}

static void close_opened(struct opened *o) {
    assert_int_equal(st_device_used_bytes(o->device), 0);
    st_device_close(o->device);
    st_pool_close(o->workers);
}

static void for_devices(void (*fn)(const char *name)) {
    for (size_t i = 0; st_devices[i]; i++)
        if (st_devices[i]->present()) fn(st_devices[i]->name);
}

static void check_case(struct st_device *device, const struct ts_case *c) {
    struct ts_result expected = ts_case_expect(c), got;
    if (ts_case_run(device, c, &got) != STINT_OK) fail_msg("%s", st_error_text());
    ts_result_compare(c, &expected, &got, st_device_caps(device)->name);
    ts_result_drop(c, &expected);
    ts_result_drop(c, &got);
}

static void check_options(struct st_device *device, struct ts_case_options o) {
    struct ts_case c = ts_case_make(&o);
    check_case(device, &c);
    ts_case_drop(&c);
}

static void formulas(const char *name) {
    struct opened o = open_named(name);
    struct ts_case_options one = {.n_rows = 1, .n_in = 1, .n_parts = 1, .rows = {1}};
    check_options(o.device, one);
    one.n_in = 64;
    one.rows[0] = 3000; // as a vocabulary
    check_options(o.device, one);
    one.two_term = one.lists = true;
    check_options(o.device, one);
    struct ts_case_options two = {.n_rows = 17,
                                  .n_in = 65,
                                  .n_middle = 129,
                                  .n_parts = 1,
                                  .rows = {63},
                                  .epilogue = ST_EPILOGUE_GATED,
                                  .act = ST_ACT_RELU,
                                  .lists = true,
                                  .add = true};
    check_options(o.device, two);
    for (int i = 0; i < 90; i++) {
        struct ts_case c = ts_case_random(st_device_caps(o.device)->row_scales && i % 2);
        check_case(o.device, &c);
        ts_case_drop(&c);
    }
    close_opened(&o);
}

static void a_device_computes_the_formulas(void **state) {
    (void)state;
    for_devices(formulas);
    formulas("sim:speed=1000000"); // which computes with kernels
}

// Activations that are not exact: all devices with the same kernels agree bit for bit, and lie near
// the formula.
static void devices_agree_on_activations(void **state) {
    (void)state;
    for (int i = 0; i < 12; i++) {
        struct ts_case_options o = {.n_rows = 1 + ts_random_below(20),
                                    .n_in = 1 + (uint32_t)ts_random_below(100),
                                    .n_middle = 1 + (uint32_t)ts_random_below(200),
                                    .n_parts = 1,
                                    .rows = {1 + (uint32_t)ts_random_below(90)},
                                    .epilogue = i % 2 ? ST_EPILOGUE_GATED : ST_EPILOGUE_ACT,
                                    .act = ST_ACT_SILU,
                                    .two_term = i % 3 == 0};
        struct ts_case c = ts_case_make(&o);
        struct ts_result expected = ts_case_expect(&c), first = {0};
        for (size_t d = 0; st_devices[d]; d++) {
            struct ts_result got;
            if (!st_devices[d]->present()) continue;
            struct opened opened = open_named(st_devices[d]->name);
            bool runs = st_device_supports(opened.device, &c.subgraph);
            if (runs) assert_int_equal(ts_case_run(opened.device, &c, &got), STINT_OK);
            close_opened(&opened);
            if (!runs) continue; // it leaves them to a host whose bits it has not
            if (first.out[0]) ts_result_compare(&c, &first, &got, st_devices[d]->name);
            for (size_t j = 0; j < c.n_rows * o.rows[0]; j++) // a few elements one step off
                assert_true(fabsf(got.out[0][j] - expected.out[0][j]) < 0.01f);
            if (first.out[0]) ts_result_drop(&c, &got);
            if (!first.out[0]) first = got;
        }
        ts_result_drop(&c, &first);
        ts_result_drop(&c, &expected);
        ts_case_drop(&c);
    }
}

// ---- Parts

// Copies of a linear's weights, slice by slice, in any order.
struct slices {
    unsigned char *memory;
    struct st_buffer *buffer;
    struct st_slice *at;
    uint32_t slice_groups;
};

static struct slices cut(struct st_device *device, const struct st_linear_op *linear_op) {
    size_t bytes = st_linear_op_group_bytes(linear_op), n_groups = st_linear_op_groups(linear_op);
    size_t all = linear_op->weight.n_panels * st_int8_panel_bytes(linear_op->weight.n_in);
    struct slices s = {.slice_groups = 1 + (uint32_t)ts_random_below(4)};
    size_t n = st_ceil_div(n_groups, s.slice_groups), slice_bytes = bytes * s.slice_groups;
    s.memory = malloc(n * slice_bytes);
    s.at = malloc(n * sizeof *s.at);
    assert_true(s.memory && s.at);
    assert_int_equal(st_buffer_import(device, s.memory, n * slice_bytes, &s.buffer), STINT_OK);
    for (size_t i = 0; i < n; i++) {
        s.at[i] = (struct st_slice){s.buffer, (n - 1 - i) * slice_bytes, 0};
        memcpy(s.memory + s.at[i].offset, linear_op->weight.panels + i * slice_bytes,
               st_min(slice_bytes, all - i * slice_bytes));
    }
    return s;
}

static void run_parts(struct ts_bench *b, struct st_graph_args *args, size_t *n_clipped) {
    const struct st_device_subgraph *subgraph = &b->c->subgraph;
    for (uint32_t i = 0; i < subgraph->n_linear_ops; i++) {
        struct slices s = cut(b->device, &subgraph->linear_ops[i]);
        struct st_linear_op_part part = {
            .linear_op = i, .slice_groups = s.slice_groups, .slices = s.at};
        uint32_t n = (uint32_t)st_linear_op_groups(&subgraph->linear_ops[i]);
        for (; part.group < n; part.group += part.n_groups) {
            struct st_job *job;
            struct st_job_result done;
            part.n_groups = 1 + (uint32_t)ts_random_below(n - part.group);
            args->part = &part;
            args->outliers.append = part.group > 0;
            assert_int_equal(st_device_submit(b->graph, args, NULL, 0, &job), STINT_OK);
            assert_int_equal(st_job_join(job, &done), STINT_OK);
            *n_clipped += done.n_clipped;
        }
        st_buffer_free(s.buffer);
        free(s.memory);
        free(s.at);
    }
}

static void check_parts(struct st_device *device) {
    struct ts_case c = ts_case_random(st_device_caps(device)->row_scales);
    struct ts_result expected = ts_case_expect(&c), got;
    struct ts_bench b;
    assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
    assert_int_equal(ts_bench_run(&b, &got), STINT_OK); // fills the inputs
    ts_result_drop(&c, &got);
    struct st_device_weights *weights[2] = {0};
    struct st_graph *whole = b.graph;
    c.subgraph.in_parts = true;
    for (uint32_t i = 0; i < c.subgraph.n_linear_ops; i++) {
        struct st_int8_weight unread = c.subgraph.linear_ops[i].weight;
        unread.panels = NULL;
        assert_int_equal(st_device_import_weights(device, &unread, true, &weights[i]), STINT_OK);
    }
    assert_int_equal(st_device_compile(device, &c.subgraph, weights, c.n_rows, &b.graph), STINT_OK);
    struct st_graph_args args = ts_bench_graph_args(&b);
    size_t n_clipped = 0;
    run_parts(&b, &args, &n_clipped);
    assert_int_equal(n_clipped, expected.clipped_middle);
    if (args.outliers.buffer) assert_int_equal(b.middle_list->count, n_clipped);
    const struct st_linear_op *last = &c.subgraph.linear_ops[c.subgraph.n_linear_ops - 1];
    for (uint32_t p = 0; p < last->n_parts; p++)
        for (size_t t = 0; t < c.n_rows; t++)
            assert_memory_equal(b.out[p] + t * b.out_row[p], expected.out[p] + t * last->rows[p],
                                last->rows[p] * sizeof(float));
    args.part = NULL;
    struct st_job *job;
    assert_int_equal(st_device_submit(b.graph, &args, NULL, 0, &job), STINT_E_INTERNAL);
    st_device_free_graph(whole);
    ts_bench_close(&b);
    for (int i = 0; i < 2; i++) st_device_free_weights(weights[i]);
    ts_result_drop(&c, &expected);
    ts_case_drop(&c);
}

static void refuse_parts(struct st_device *device) {
    struct ts_case c = ts_case_random(false);
    struct st_device_weights *weights;
    c.subgraph.in_parts = true;
    assert_false(st_device_supports(device, &c.subgraph));
    assert_int_equal(
        st_device_import_weights(device, &c.subgraph.linear_ops[0].weight, true, &weights),
        STINT_E_UNSUPPORTED);
    struct st_buffer *buffer;
    assert_int_equal(st_buffer_import(device, c.x, sizeof(float), &buffer), STINT_E_UNSUPPORTED);
    ts_case_drop(&c);
}

static void parts(const char *name) {
    struct opened o = open_named(name);
    for (int i = 0; i < 20; i++)
        (st_device_caps(o.device)->host_memory ? check_parts : refuse_parts)(o.device);
    close_opened(&o);
}

static void linears_run_in_parts_from_host_memory(void **state) {
    (void)state;
    for_devices(parts);
}

// ---- Memory

static void buffers(const char *name) {
    struct opened o = open_with(&(struct st_device_options){.name = name, .memory_limit = 5000}, 1);
    struct st_buffer *small, *large;
    struct st_mapping map;
    assert_int_equal(st_device_caps(o.device)->memory_limit, 5000);
    assert_int_equal(st_buffer_allocate(o.device, 3000, &small), STINT_OK);
    assert_int_equal(st_device_used_bytes(o.device), 3000);
    assert_int_equal(st_buffer_allocate(o.device, 2001, &large), STINT_E_LIMIT);
    assert_non_null(strstr(st_error_text(), name));
    assert_int_equal(st_buffer_allocate(o.device, 2000, &large), STINT_OK);
    st_buffer_free(large);
    assert_int_equal(st_buffer_map(small, 100, 2901, ST_MAP_READ, &map), STINT_E_INTERNAL);
    assert_int_equal(st_buffer_map(small, SIZE_MAX, 2, ST_MAP_READ, &map), STINT_E_INTERNAL);
    assert_int_equal(st_buffer_map(small, 100, 200, ST_MAP_READ | ST_MAP_WRITE, &map), STINT_OK);
    for (int i = 0; i < 200; i++) assert_int_equal(((unsigned char *)map.data)[i], 0);
    memset(map.data, 7, 200);
    assert_int_equal(st_buffer_unmap(&map), STINT_OK);
    assert_int_equal(st_buffer_map(small, 99, 202, ST_MAP_READ, &map), STINT_OK);
    const unsigned char *seen = map.data;
    assert_true(seen[0] == 0 && seen[1] == 7 && seen[200] == 7 && seen[201] == 0);
    assert_int_equal(st_buffer_unmap(&map), STINT_OK);
    st_buffer_free(small);
    close_opened(&o);
}

static void buffers_are_mapped_and_counted(void **state) {
    (void)state;
    for_devices(buffers);
}

static void weight_limits(const char *name) {
    struct ts_case c = ts_case_random(false);
    const struct st_int8_weight *w = &c.subgraph.linear_ops[0].weight;
    struct opened o = open_named(name);
    size_t bytes = st_device_weights_bytes(o.device, w);
    struct st_device_weights *weights;
    close_opened(&o);
    assert_true(bytes >= (size_t)w->n_panels * ST_INT8_PANEL * w->n_in);
    o = open_with(&(struct st_device_options){.name = name, .memory_limit = bytes - 1}, 1);
    assert_int_equal(st_device_import_weights(o.device, w, false, &weights), STINT_E_LIMIT);
    close_opened(&o);
    o = open_with(&(struct st_device_options){.name = name, .memory_limit = bytes}, 1);
    assert_int_equal(st_device_import_weights(o.device, w, false, &weights), STINT_OK);
    assert_int_equal(st_device_used_bytes(o.device), bytes);
    st_device_free_weights(weights);
    close_opened(&o);
    ts_case_drop(&c);
}

static void weights_count_against_the_limit(void **state) {
    (void)state;
    for_devices(weight_limits);
}

static void imported_memory_can_change(void **state) {
    (void)state;
    struct opened o = open_named("cpu");
    unsigned char first[8] = {1}, second[4] = {2};
    struct st_buffer *buffer;
    struct st_mapping map;
    assert_int_equal(st_buffer_import(o.device, first, sizeof first, &buffer), STINT_OK);
    ts_fail_allocation(0);
    st_buffer_rebind(buffer, second, sizeof second);
    assert_int_equal(ts_allocations(), 0);
    assert_int_equal(st_buffer_bytes(buffer), sizeof second);
    assert_int_equal(st_buffer_map(buffer, 0, 5, ST_MAP_READ, &map), STINT_E_INTERNAL);
    assert_int_equal(st_buffer_map(buffer, 0, 4, ST_MAP_READ, &map), STINT_OK);
    assert_ptr_equal(map.data, second);
    assert_int_equal(st_buffer_unmap(&map), STINT_OK);
    st_buffer_free(buffer);
    close_opened(&o);
}

// ---- Arguments

static void expect_refused(struct ts_bench *b, const struct st_graph_args *args) {
    struct st_job *job = NULL;
    assert_int_equal(st_device_submit(b->graph, args, NULL, 0, &job), STINT_E_INTERNAL);
    assert_null(job);
}

static void expect_not_quantized(struct ts_bench *b, const struct st_quantize_args *args) {
    struct st_job *job = NULL;
    assert_int_equal(st_device_quantize(b->device, args, NULL, 0, &job), STINT_E_INTERNAL);
    assert_null(job);
}

static void refuse_graph_arguments(struct ts_bench *b, struct st_buffer *foreign) {
    const struct st_graph_args good = ts_bench_graph_args(b);
    size_t end = st_buffer_bytes(b->mirror.buffer);
    struct st_graph_args bad = good;
    bad.n_rows++;
    expect_refused(b, &bad);
    struct st_slice *slices[] = {&bad.in, &bad.middle, &bad.out[0], &bad.add, &bad.add_row};
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        bad = good;
        slices[i]->offset = end / 64 * 64;
        expect_refused(b, &bad);
        slices[i]->offset = SIZE_MAX / 64 * 64;
        expect_refused(b, &bad);
        bad = good;
        slices[i]->offset += 2;
        expect_refused(b, &bad);
        bad = good;
        slices[i]->buffer = foreign;
        expect_refused(b, &bad);
    }
    bad = good;
    bad.out[0].row_bytes = 4;
    expect_refused(b, &bad);
    bad.out[0].row_bytes = SIZE_MAX / 8 * 4;
    expect_refused(b, &bad);
    bad = good;
    bad.outliers.capacity = SIZE_MAX;
    expect_refused(b, &bad);
    bad.outliers.capacity = end;
    expect_refused(b, &bad);
    bad = good;
    bad.part = &(struct st_linear_op_part){0};
    expect_refused(b, &bad);
}

static void refuse_quantize_arguments(struct ts_bench *b, struct st_buffer *foreign) {
    const struct st_quantize_args good = ts_bench_quantize_args(b);
    struct st_quantize_args bad = good;
    bad.n = 0;
    expect_not_quantized(b, &bad);
    bad = good;
    bad.scale = -1.0f;
    expect_not_quantized(b, &bad);
    bad = good;
    bad.n_rows = 1u << 30;
    expect_not_quantized(b, &bad);
    bad = good;
    bad.x.buffer = foreign;
    expect_not_quantized(b, &bad);
    bad = good;
    bad.quantized.offset += 1;
    expect_not_quantized(b, &bad);
    bad = good;
    bad.outliers.offset = st_buffer_bytes(b->mirror.buffer) / 64 * 64;
    expect_not_quantized(b, &bad);
}

static void refusals(const char *name) {
    struct opened o = open_named(name), other = open_named(name);
    struct st_buffer *foreign;
    struct ts_case c = ts_case_make(&(struct ts_case_options){.n_rows = 3,
                                                              .n_in = 30,
                                                              .n_middle = 40,
                                                              .n_parts = 1,
                                                              .rows = {20},
                                                              .epilogue = ST_EPILOGUE_ACT,
                                                              .act = ST_ACT_RELU,
                                                              .lists = true,
                                                              .add = true});
    struct ts_bench b;
    assert_int_equal(ts_bench_open(o.device, &c, &b), STINT_OK);
    size_t bytes = st_buffer_bytes(b.mirror.buffer);
    assert_int_equal(st_buffer_allocate(other.device, bytes, &foreign), STINT_OK);
    refuse_graph_arguments(&b, foreign);
    refuse_quantize_arguments(&b, foreign);
    st_buffer_free(foreign);
    ts_bench_close(&b);
    ts_case_drop(&c);
    close_opened(&o);
    close_opened(&other);
}

static void arguments_outside_their_buffers_are_refused(void **state) {
    (void)state;
    for_devices(refusals);
}

static void bad_graphs(const char *name) {
    struct opened o = open_named(name);
    struct ts_case c = ts_case_make(
        &(struct ts_case_options){.n_rows = 1, .n_in = 30, .n_parts = 1, .rows = {40}});
    struct st_device_weights *weights;
    struct st_graph *graph;
    assert_int_equal(
        st_device_import_weights(o.device, &c.subgraph.linear_ops[0].weight, false, &weights),
        STINT_OK);
    struct st_device_subgraph bad = c.subgraph;
    bad.linear_ops[0].rows[0] = 70;
    assert_false(st_device_supports(o.device, &bad));
    assert_int_equal(st_device_compile(o.device, &bad, &weights, 4, &graph), STINT_E_INTERNAL);
    bad = c.subgraph;
    bad.linear_ops[0].epilogue = ST_EPILOGUE_ACT;
    assert_int_equal(st_device_compile(o.device, &bad, &weights, 4, &graph), STINT_E_INTERNAL);
    bad = c.subgraph;
    bad.linear_ops[0].weight.n_in = 31;
    assert_int_equal(st_device_compile(o.device, &bad, &weights, 4, &graph), STINT_E_INTERNAL);
    bad = c.subgraph;
    bad.n_linear_ops = 3;
    assert_false(st_device_supports(o.device, &bad));
    assert_true(st_device_supports(o.device, &c.subgraph));
    assert_int_equal(st_device_compile(o.device, &c.subgraph, &weights, 0, &graph),
                     STINT_E_INTERNAL);
    assert_int_equal(st_device_compile(o.device, &c.subgraph, &weights, 4, &graph), STINT_OK);
    assert_true(st_graph_bytes(graph) > 0);
    st_device_free_graph(graph);
    st_device_free_weights(weights);
    ts_case_drop(&c);
    close_opened(&o);
}

static void graphs_that_do_not_fit_are_refused(void **state) {
    (void)state;
    for_devices(bad_graphs);
}

// ---- Names

static void devices_are_opened_by_name(void **state) {
    (void)state;
    struct opened o = open_named(NULL);
    assert_string_not_equal(st_device_caps(o.device)->name, "sim"); // the best there is
    struct st_device *device = NULL;
    struct st_device_options options = {.name = "tpu", .workers = o.workers};
    assert_int_equal(st_device_open(&options, &device), STINT_E_ARG);
    assert_non_null(strstr(st_error_text(), "known are: amx, cpu, hexagon, opencl, sim"));
    options.name = "cpu:fail=1";
    assert_int_equal(st_device_open(&options, &device), STINT_E_ARG);
    const char *bad[] = {
        "sim:",        "sim:fail",   "sim:fail=",   "sim:fail=x",          "sim:fail=1x",
        "sim:fail=1,", "sim:what=1", "sim:fail=-1", "sim:fail=99999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options.name = bad[i];
        assert_int_equal(st_device_open(&options, &device), STINT_E_ARG);
        assert_non_null(strstr(st_error_text(), "is not NAME=NUMBER"));
    }
    assert_null(device);
    options.name = "amx";
    stint_status amx = st_device_open(&options, &device);
    assert_int_equal(amx, st_devices[0]->present() ? STINT_OK : STINT_E_DEVICE);
    st_device_close(amx == STINT_OK ? device : NULL);
    close_opened(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_computes_the_formulas),
        cmocka_unit_test(devices_agree_on_activations),
        cmocka_unit_test(linears_run_in_parts_from_host_memory),
        cmocka_unit_test(buffers_are_mapped_and_counted),
        cmocka_unit_test(weights_count_against_the_limit),
        cmocka_unit_test(imported_memory_can_change),
        cmocka_unit_test(arguments_outside_their_buffers_are_refused),
        cmocka_unit_test(graphs_that_do_not_fit_are_refused),
        cmocka_unit_test(devices_are_opened_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

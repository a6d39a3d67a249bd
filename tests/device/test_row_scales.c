// SPDX-License-Identifier: Apache-2.0
// Inputs with a scale for each row (device/device.h), on devices that have them and on others.
#include "base/cpu.h"
#include "device/driver.h"
#include "support/device_cases.h"
#include "support/support.h"

#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { N_IN = 70, N_MIDDLE = 130 };

static void check(struct st_device *device, const struct ts_case *c) {
    struct ts_result expected = ts_case_expect(c), got;
    assert_true(st_device_supports(device, &c->subgraph));
    if (ts_case_run(device, c, &got) != STINT_OK) fail_msg("%s", st_error_text());
    ts_result_compare(c, &expected, &got, st_device_caps(device)->name);
    assert_int_equal(got.clipped_in + got.clipped_middle, 0);
    ts_result_drop(c, &expected);
    ts_result_drop(c, &got);
}

static void run(struct st_device *device, bool two_term, const float *norm) {
    struct ts_case_options options = {.n_rows = 3,
                                      .n_in = N_IN,
                                      .n_middle = N_MIDDLE,
                                      .n_parts = 1,
                                      .rows = {20},
                                      .epilogue = ST_EPILOGUE_GATED,
                                      .act = ST_ACT_RELU,
                                      .two_term = two_term,
                                      .row_scales = {true, true}};
    struct ts_case c = ts_case_make(&options);
    c.subgraph.linear_ops[1].norm = norm;
    c.subgraph.linear_ops[1].norm_epsilon = 1e-5f;
    bool has = st_device_caps(device)->row_scales, said = !has;
    // What has a processor of its own adds in the order of the host's lanes, if there are any.
    bool adds = !st_device_caps(device)->own_processor ||
                st_elementwise_select(st_cpu_flags())->sum_lanes > 0;
    bool runs = has && (!norm || (device->ops->norms && adds));
    struct ts_result unused;
    assert_int_equal(st_device_has_row_scales(st_device_caps(device)->name, &said), STINT_OK);
    assert_true(said == has);
    c.x[5] = 1e6f; // the other rows keep their precision
    memset(c.x + N_IN, 0, N_IN * sizeof *c.x);
    if (runs)
        check(device, &c);
    else
        assert_int_not_equal(ts_case_run(device, &c, &unused), STINT_OK);
    ts_case_drop(&c);
}

static void devices_do_it_or_say_that_they_cannot(void **state) {
    (void)state;
    float norm[N_MIDDLE];
    for (size_t i = 0; i < N_MIDDLE; i++) norm[i] = ts_random_float(0.5f, 1.5f);
    for (size_t i = 0; st_devices[i]; i++) {
        struct st_device_options options = {.name = st_devices[i]->name};
        struct st_device *device;
        if (!st_devices[i]->present()) continue;
        assert_int_equal(st_pool_open(2, &options.workers), STINT_OK);
        assert_int_equal(st_device_open(&options, &device), STINT_OK);
        run(device, false, NULL);
        run(device, true, NULL);
        run(device, false, norm);
        run(device, true, norm);
        st_device_close(device);
        st_pool_close(options.workers);
    }
}

// A norm needs whole rows in float, and an input that comes from within the subgraph.
static void a_norm_elsewhere_is_refused(void **state) {
    (void)state;
    float norm[N_MIDDLE] = {0};
    struct st_device_options options = {.name = "cpu"};
    struct st_device *device;
    assert_int_equal(st_pool_open(1, &options.workers), STINT_OK);
    assert_int_equal(st_device_open(&options, &device), STINT_OK);
    for (int place = 0; place < 2; place++) {
        struct ts_case_options o = {.n_rows = 1,
                                    .n_in = N_IN,
                                    .n_middle = N_MIDDLE,
                                    .n_parts = 1,
                                    .rows = {20},
                                    .epilogue = ST_EPILOGUE_ACT,
                                    .row_scales = {true, place == 0}};
        struct ts_case c = ts_case_make(&o);
        assert_true(st_device_supports(device, &c.subgraph));
        c.subgraph.linear_ops[place].norm = norm;
        assert_false(st_device_supports(device, &c.subgraph));
        ts_case_drop(&c);
    }
    st_device_close(device);
    st_pool_close(options.workers);
}

static void an_unknown_name_is_refused(void **state) {
    (void)state;
    bool has;
    assert_int_equal(st_device_has_row_scales("tpu", &has), STINT_E_ARG);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(devices_do_it_or_say_that_they_cannot),
                                       cmocka_unit_test(a_norm_elsewhere_is_refused),
                                       cmocka_unit_test(an_unknown_name_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

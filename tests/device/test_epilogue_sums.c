// SPDX-License-Identifier: Apache-2.0
// Graphs that end in exact sums, on all devices that are here.
#include "device/driver.h"
#include "device/two_term.h"
#include "support/device_cases.h"
#include "support/support.h"

#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

// The sums of a graph that ends in them, as docs/NUMERICS.md makes floats of them.
static void check_sums(struct ts_bench *b, const float *floats) {
    const struct st_linear_op *last = &b->c->subgraph.linear_ops[1];
    size_t row = b->out_row[0], bytes = ST_TWO_TERMS * b->c->n_rows * row * sizeof(float);
    struct ts_result result;
    assert_int_equal(ts_bench_run(b, &result), STINT_OK);
    assert_int_equal(st_mirror_pull(&b->mirror, b->out[0], bytes), STINT_OK);
    for (size_t t = 0; t < b->c->n_rows; t++)
        for (size_t i = 0; i < last->rows[0]; i++) {
            int32_t sums[ST_TWO_TERMS];
            for (size_t j = 0; j < ST_TWO_TERMS; j++)
                memcpy(&sums[j], &b->out[0][(ST_TWO_TERMS * t + j) * row + i], sizeof *sums);
            float both = (float)((int64_t)254 * sums[0] + sums[1]);
            float y = both * (1.0f / 254.0f * last->weight.factor[i]);
            assert_memory_equal(&y, &floats[t * last->rows[0] + i], sizeof y);
        }
    ts_result_drop(b->c, &result);
}

static void check_device(struct st_device *device) {
    struct ts_case c = ts_case_make(&(struct ts_case_options){.n_rows = 5,
                                                              .n_in = 65,
                                                              .n_middle = 129,
                                                              .n_parts = 1,
                                                              .rows = {63},
                                                              .epilogue = ST_EPILOGUE_GATED,
                                                              .act = ST_ACT_RELU,
                                                              .two_term = true});
    struct ts_result floats;
    struct ts_bench b;
    assert_int_equal(ts_case_run(device, &c, &floats), STINT_OK);
    c.subgraph.linear_ops[1].epilogue = ST_EPILOGUE_SUMS;
    bool can = st_device_caps(device)->sums;
    assert_int_equal(st_device_supports(device, &c.subgraph), can);
    if (can) {
        assert_int_equal(ts_bench_open(device, &c, &b), STINT_OK);
        check_sums(&b, floats.out[0]);
        ts_bench_close(&b);
    }
    ts_result_drop(&c, &floats);
    ts_case_drop(&c);
}

static void sums_are_what_floats_are_made_of(void **state) {
    (void)state;
    for (size_t i = 0; st_devices[i]; i++) {
        struct st_device_options options = {.name = st_devices[i]->name};
        struct st_device *device;
        if (!st_devices[i]->present()) continue;
        assert_int_equal(st_pool_open(2, &options.workers), STINT_OK);
        if (st_device_open(&options, &device) != STINT_OK) fail_msg("%s", st_error_text());
        check_device(device);
        st_device_close(device);
        st_pool_close(options.workers);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_what_floats_are_made_of)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

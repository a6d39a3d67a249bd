// SPDX-License-Identifier: Apache-2.0
// Times of precisions: as they are stated, and what an answer costs by them.
#include "eval/precision_times.h"

#include "support/kinds.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static stint_model *model;

static int open_model(void **state) {
    (void)state;
    stint_prepare_options o = {.size = sizeof o, .n_tokens = 200, .bits_low = 3, .bits_high = 4};
    model = ts_package(ts_built("models/novels-2"), "times", &o);
    return 0;
}

static int close_model(void **state) {
    (void)state;
    stint_model_close(model);
    return 0;
}

static void stated_times_are_read(void **state) {
    (void)state;
    struct st_precision_times t;
    assert_int_equal(st_precision_times_read(model, "8:0.5:6,4:0.75:4,3:1:2e0", &t), STINT_OK);
    assert_float_equal(t.token[8], 0.5, 0.0);
    assert_float_equal(t.step[8], 6.0, 0.0);
    assert_float_equal(t.token[4], 0.75, 0.0);
    assert_float_equal(t.step[3], 2.0, 0.0);
}

static void bad_times_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",       "8:1:1,4:1:1", "8:1:1,4:1:1,3:1", "9:1:1",   "8:1:1,2:1:1",
        "8:-1:1", "8:1:nan",     "8:1:1;4:1:1",     "8:inf:1", "x"};
    struct st_precision_times t = {.token = {7.0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (st_precision_times_read(model, bad[i], &t) != STINT_E_ARG) fail_msg("'%s'", bad[i]);
        assert_float_equal(t.token[0], 7.0, 0.0);
    }
    assert_int_equal(st_precision_times_read(model, "8:1:1,4:1:1", &t), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "precision 3"));
}

static void an_answer_costs_its_prompt_and_its_steps(void **state) {
    (void)state;
    const int32_t ids[] = {5, 80, 900, 17, 33};
    const stint_precision p = {.n_steps = 2, .steps = {{8, 0}, {3, 4}}};
    struct st_precision_times t, measured;
    struct st_fork fork;
    assert_int_equal(st_precision_times_read(model, "8:1:10,4:2:20,3:4:100", &t), STINT_OK);
    assert_int_equal(st_fork_open(model, NULL, 16, 8, false, &fork), STINT_OK);
    assert_int_equal(st_precision_times_measure(&fork, ids, 5, &measured), STINT_OK);
    for (unsigned bits = 1; bits <= 8; bits++) {
        bool has = bits == 8 || bits == 4 || bits == 3;
        assert_true(has == (measured.step[bits] > 0.0) && has == (measured.token[bits] > 0.0));
    }
    assert_int_equal(st_fork_prompt(&fork, ids, 5, 4), STINT_OK);
    assert_int_equal(st_fork_write_by(&fork, &p), STINT_OK);
    size_t steps = st_fork_steps(&fork);
    assert_true(steps > 4);
    double wanted = 5 * 2e-3 + 4 * 10e-3 + (double)(steps - 4) * 100e-3;
    assert_float_equal(st_precision_times_answer(&t, &fork, 4), wanted, 1e-9);
    st_fork_close(&fork);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stated_times_are_read),
        cmocka_unit_test(bad_times_are_refused),
        cmocka_unit_test(an_answer_costs_its_prompt_and_its_steps),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}

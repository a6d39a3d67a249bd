// SPDX-License-Identifier: Apache-2.0
// Means with their standard errors and bounds, against values of NumPy and SciPy.
#include "eval/mean.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

// Quantiles of scipy.stats.t.ppf(0.95, n - 1).
static const struct {
    unsigned n;
    double student;
} rows[] = {{2, 6.313752},  {3, 2.919986},  {4, 2.353363},  {5, 2.131847},
            {11, 1.812461}, {18, 1.739607}, {48, 1.677927}, {1001, 1.646379}};

static struct st_mean alternating(unsigned n) {
    struct st_mean mean = {0};
    for (unsigned i = 0; i < n; i++) st_mean_add(&mean, i % 2 ? 3.0 : 1.0);
    return mean;
}

static void errors_are_those_of_samples(void **state) {
    (void)state;
    struct st_mean mean = {0};
    for (unsigned i = 0; i < 4; i++) st_mean_add(&mean, (const double[]){1.0, 2.0, 4.0, 9.0}[i]);
    assert_float_equal(st_mean_value(&mean), 4.0, 1e-12);
    assert_float_equal(st_mean_error(&mean), 1.7795130420052185, 1e-9);
    assert_float_equal(st_mean_bound(&mean), 4.0 + 1.7795130420052185 * 2.353363, 0.02);
}

static void few_values_bound_less(void **state) {
    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct st_mean mean = alternating(rows[i].n);
        double errors = (st_mean_bound(&mean) - st_mean_value(&mean)) / st_mean_error(&mean);
        assert_float_equal(errors, rows[i].student, 0.003 * rows[i].student);
    }
}

static void one_value_bounds_nothing(void **state) {
    (void)state;
    struct st_mean mean = {0};
    assert_true(st_mean_value(&mean) == 0.0);
    st_mean_add(&mean, 5.0);
    assert_true(st_mean_value(&mean) == 5.0);
    assert_true(st_mean_error(&mean) == 0.0);
    assert_true(isinf(st_mean_bound(&mean)));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(errors_are_those_of_samples),
                                       cmocka_unit_test(few_values_bound_less),
                                       cmocka_unit_test(one_value_bounds_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "generate/latency.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void assert_near(double got, double wanted) {
    if (fabs(got - wanted) > 0.03 * wanted) fail_msg("%g, expected %g", got, wanted);
}

static void quantiles_are_within_3_percent(void **state) {
    (void)state;
    struct st_latency l = {0};
    for (int i = 1; i <= 1000; i++) st_latency_add(&l, 1e-3 * (double)((i * 617) % 1001));
    assert_near(st_latency_quantile(&l, 0.5), 0.5);
    assert_near(st_latency_quantile(&l, 0.9), 0.9);
    assert_near(st_latency_quantile(&l, 0.99), 0.99);
    assert_near(st_latency_quantile(&l, 1.0), 1.0);
}

static void one_slow_step_is_seen_at_the_end_alone(void **state) {
    (void)state;
    struct st_latency l = {0};
    for (int i = 0; i < 99; i++) st_latency_add(&l, 0.01);
    st_latency_add(&l, 4.0);
    assert_near(st_latency_quantile(&l, 0.99), 0.01);
    assert_near(st_latency_quantile(&l, 1.0), 4.0);
}

static void nothing_and_extremes_have_their_place(void **state) {
    (void)state;
    struct st_latency l = {0};
    assert_true(st_latency_quantile(&l, 0.5) == 0.0);
    st_latency_add(&l, 0.0);
    assert_near(st_latency_quantile(&l, 1.0), 1e-6);
    st_latency_add(&l, 1e9);
    assert_true(st_latency_quantile(&l, 1.0) > 200.0);
    assert_near(st_latency_quantile(&l, 0.5), 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_within_3_percent),
        cmocka_unit_test(one_slow_step_is_seen_at_the_end_alone),
        cmocka_unit_test(nothing_and_extremes_have_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

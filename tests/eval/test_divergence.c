// SPDX-License-Identifier: Apache-2.0
// The divergence of two distributions.
#include "eval/divergence.h"

#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void it_is_zero_for_the_same_distribution(void **state) {
    (void)state;
    float a[50], shifted[50];
    for (size_t i = 0; i < 50; i++) a[i] = ts_random_float(-9.0f, 9.0f);
    for (size_t i = 0; i < 50; i++) shifted[i] = a[i] + 3.0f;
    assert_float_equal(st_divergence(a, a, 50), 0.0, 1e-12);
    assert_float_equal(st_divergence(a, shifted, 50), 0.0, 1e-5);
}

static void it_is_that_of_the_definition(void **state) {
    (void)state;
    const float p[] = {logf(0.5f), logf(0.25f), logf(0.25f)}; // against thirds
    const float q[] = {0.0f, 0.0f, 0.0f};
    double wanted = 0.5 * log(0.5 * 3.0) + 2 * 0.25 * log(0.25 * 3.0);
    double back = -log(3.0) - (log(0.5) + 2 * log(0.25)) / 3.0;
    assert_float_equal(st_divergence(p, q, 3), wanted, 1e-6);
    assert_float_equal(st_divergence(q, p, 3), back, 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_zero_for_the_same_distribution),
        cmocka_unit_test(it_is_that_of_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

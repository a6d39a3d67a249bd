// SPDX-License-Identifier: Apache-2.0
#include "base/size.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

static void size_sums_and_products_fit_or_are_refused(void **state) {
    (void)state;
    size_t out = 5;
    assert_false(st_size_add(SIZE_MAX, 1, &out));
    assert_false(st_size_mul(SIZE_MAX / 2 + 1, 2, &out));
    assert_int_equal(out, 5);
    assert_true(st_size_add(SIZE_MAX, 0, &out) && out == SIZE_MAX);
    assert_true(st_size_mul(SIZE_MAX, 1, &out) && out == SIZE_MAX);
    assert_true(st_size_mul(SIZE_MAX, 0, &out) && out == 0);
}

static void size_division_rounds_up_without_wrapping(void **state) {
    (void)state;
    assert_int_equal(st_ceil_div(0, 7), 0);
    assert_int_equal(st_ceil_div(7, 7), 1);
    assert_int_equal(st_ceil_div(8, 7), 2);
    assert_true(st_ceil_div(SIZE_MAX, 2) == SIZE_MAX / 2 + 1);
    assert_int_equal(st_round_up(65, 64), 128);
    assert_int_equal(st_round_up(64, 64), 64);
    assert_true(st_min(1, 2) == 1 && st_max(1, 2) == 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_sums_and_products_fit_or_are_refused),
        cmocka_unit_test(size_division_rounds_up_without_wrapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

static void draws_are_uniform_and_repeatable(void **state) {
    (void)state;
    double sum = 0.0;
    for (uint64_t i = 0; i < 10000; i++) {
        double draw = st_random_draw(42, i);
        assert_true(draw >= 0.0 && draw < 1.0);
        assert_true(draw == st_random_draw(42, i));
        sum += draw;
    }
    assert_true(fabs(sum / 10000 - 0.5) < 0.02);
    assert_true(st_random_draw(42, 0) != st_random_draw(43, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_are_uniform_and_repeatable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "base/log_sum.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

static void equal_logits_sum_to_their_number(void **state) {
    (void)state;
    const float logits[] = {2.0f, 2.0f, 2.0f, 2.0f};
    assert_true(fabs(st_log_sum(logits, 4) - (2.0 + log(4.0))) < 1e-12);
}

static void large_logits_do_not_overflow_and_bans_count_nothing(void **state) {
    (void)state;
    const float logits[] = {1000.0f, -INFINITY, 1000.0f, -2000.0f};
    assert_true(fabs(st_log_sum(logits, 4) - (1000.0 + log(2.0))) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_logits_sum_to_their_number),
        cmocka_unit_test(large_logits_do_not_overflow_and_bans_count_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

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

static void sums_of_many_logits_are_those_of_doubles(void **state) {
    (void)state;
    enum { N = 1003 };
    float logits[N];
    double sum = 0.0;
    uint32_t seed = 1;
    for (size_t i = 0; i < N; i++) {
        seed = seed * 1664525u + 1013904223u;
        logits[i] = (float)(seed >> 8) * 0x1p-24f * 40.0f - 33.0f;
        sum += exp((double)logits[i]);
    }
    for (size_t n = N; n > N - 20; n--) {
        assert_true(fabs(st_log_sum(logits, n) - log(sum)) < 1e-7);
        sum -= exp((double)logits[n - 1]);
    }
}

static void what_is_no_number_stays_so(void **state) {
    (void)state;
    float logits[20] = {0.0f};
    logits[3] = NAN;
    assert_true(isnan(st_log_sum(logits, 20)));
    logits[3] = 0.0f;
    logits[19] = NAN;
    assert_true(isnan(st_log_sum(logits, 20)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_logits_sum_to_their_number),
        cmocka_unit_test(large_logits_do_not_overflow_and_bans_count_nothing),
        cmocka_unit_test(sums_of_many_logits_are_those_of_doubles),
        cmocka_unit_test(what_is_no_number_stays_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

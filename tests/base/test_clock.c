// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

static void clock_never_goes_back_and_counts_nanoseconds(void **state) {
    (void)state;
    uint64_t first = st_now_ns(), before = first;
    for (int i = 0; i < 1000; i++) {
        uint64_t now = st_now_ns();
        assert_true(now >= before);
        before = now;
    }
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    assert_true(st_now_ns() - first >= 2000000); // a sleep is never shorter than asked
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock_never_goes_back_and_counts_nanoseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "stint.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void process_peak_memory_grows_with_what_is_touched_and_stays(void **state) {
    (void)state;
    enum { BYTES = 64 << 20 };
    uint64_t before = stint_peak_rss_bytes();
    volatile char *block = malloc(BYTES);
    assert_non_null(block);
    for (size_t i = 0; i < BYTES; i += 4096) block[i] = 1;
    uint64_t after = stint_peak_rss_bytes();
    free((void *)block);
    assert_true(before > 0);
    assert_true(after >= BYTES);
    assert_true(stint_peak_rss_bytes() >= after);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(process_peak_memory_grows_with_what_is_touched_and_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

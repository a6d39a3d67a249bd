// SPDX-License-Identifier: Apache-2.0
#include "neuron/keep.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <cmocka.h>

enum { MOST = 60 };

static int descending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

// The same by sorting.
static void the_largest_stay(void **state) {
    (void)state;
    for (int round = 0; round < 2000; round++) {
        size_t n = ts_random_below(MOST + 1), room = ts_random_below(MOST + 10), n_kept = 0;
        uint32_t bytes[MOST], sorted[MOST], sizes = 1 + (uint32_t)ts_random_below(20);
        uint8_t kept[MOST];
        uint64_t wanted = 0, sum = 0;
        for (size_t i = 0; i < n; i++)
            sorted[i] = bytes[i] = (uint32_t)ts_random_below(sizes) * 214748364u;
        qsort(sorted, n, sizeof *sorted, descending);
        for (size_t i = 0; i < n && i < room; i++) wanted += sorted[i];
        assert_int_equal(st_keep_largest(bytes, n, room, kept), wanted);
        for (size_t i = 0; i < n; i++) {
            assert_true(kept[i] <= 1 && !(kept[i] && bytes[i] == 0));
            sum += kept[i] ? bytes[i] : 0;
            n_kept += kept[i];
            for (size_t k = 0; k < i; k++)
                assert_false(bytes[k] == bytes[i] && kept[i] && !kept[k]); // the first
        }
        assert_true(sum == wanted && n_kept <= room);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_largest_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

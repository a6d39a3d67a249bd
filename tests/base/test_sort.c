// SPDX-License-Identifier: Apache-2.0
// Both ways of sorting give the one order there is.
#include "base/sort.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct item {
    uint32_t key, place;
    char tail; // the size is no power of two
};

static int by_key(const void *a, const void *b, void *context) {
    const struct item *x = a, *y = b;
    ++*(size_t *)context;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static void both_ways_sort_alike(void **state) {
    (void)state;
    struct item one[300], other[300];
    for (int round = 0; round < 200; round++) {
        size_t n = round < 10 ? (size_t)round : (size_t)ts_random_below(300), n_compared = 0;
        uint32_t n_keys = 1 + (uint32_t)ts_random_below(400);
        memset(one, 0, sizeof one);
        for (size_t i = 0; i < n; i++) {
            one[i].key = (uint32_t)ts_random_below(n_keys);
            one[i].place = (uint32_t)i;
        }
        memcpy(other, one, sizeof one);
        st_sort(one, n, sizeof *one, by_key, &n_compared);
        st_heap_sort(other, n, sizeof *other, by_key, &n_compared);
        assert_memory_equal(one, other, sizeof one);
        for (size_t i = 1; i < n; i++) assert_true(by_key(&one[i - 1], &one[i], &n_compared) < 0);
        assert_true(n < 2 || n_compared > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_ways_sort_alike)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

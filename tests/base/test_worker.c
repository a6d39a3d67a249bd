// SPDX-License-Identifier: Apache-2.0
#include "base/worker.h"

#include "base/thread.h"
#include "support/support.h"

#include <stdatomic.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { N = 300 };

struct sum {
    size_t n;
    atomic_size_t total;
    bool slow;
};

static void add(void *context) {
    struct sum *s = context;
    if (s->slow) usleep(1000); // the other side sleeps meanwhile
    for (size_t i = 0; i < s->n; i++) s->total += i;
}

static void add_item(void *context, size_t item, size_t worker) {
    struct sum *s = context;
    (void)worker;
    s->total += item;
}

// While the caller runs a pool's loops.
static void it_runs_beside_its_caller(void **state) {
    (void)state;
    struct st_worker *w = NULL;
    struct st_pool *pool = NULL;
    assert_int_equal(st_worker_open(&w), STINT_OK);
    assert_int_equal(st_pool_open(2, &pool), STINT_OK);
    st_worker_join(w);
    for (int round = 0; round < 200; round++) {
        struct sum one = {.n = N, .slow = round % 50 == 0}, other = {.n = N};
        st_worker_begin(w, add, &one);
        st_pool_run(pool, add_item, &other, N);
        if (round % 50 == 1) usleep(1000);
        st_worker_join(w);
        assert_int_equal(one.total, N * (N - 1) / 2);
        assert_int_equal(other.total, one.total);
    }
    struct sum last = {.n = N, .slow = true};
    st_worker_begin(w, add, &last);
    st_worker_close(w); // waits
    assert_int_equal(last.total, N * (N - 1) / 2);
    st_pool_close(pool);
    st_worker_close(NULL);
}

static void no_memory_is_an_error(void **state) {
    (void)state;
    struct st_worker *w = NULL;
    ts_fail_allocation(1);
    assert_int_equal(st_worker_open(&w), STINT_E_NOMEM);
    ts_fail_allocation(0);
    assert_null(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_runs_beside_its_caller),
        cmocka_unit_test(no_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

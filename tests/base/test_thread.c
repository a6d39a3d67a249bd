// SPDX-License-Identifier: Apache-2.0
// The pool's promises: each item once, by a worker that exists, all done on return, nothing
// allocated. Under the thread sanitizer this is also the proof that a loop's data is handed over.
#include "base/cpu.h"
#include "base/status.h"
#include "base/thread.h"
#include "support/support.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

enum { MAX_ITEMS = 2000, MAX_THREADS = 8 };

struct loop {
    struct st_pool *pool;
    unsigned n_runs[MAX_ITEMS]; // plain on purpose: each item has one writer
    size_t per_worker[MAX_THREADS];
    atomic_bool bad_worker, bad_range;
    atomic_size_t n_ranges;
    size_t n_items, least; // of ranges
};

static void count(void *context, size_t item, size_t worker) {
    struct loop *loop = context;
    if (worker >= st_pool_threads(loop->pool)) loop->bad_worker = true;
    loop->n_runs[item]++;
    loop->per_worker[worker]++;
}

static void check_loop(struct st_pool *pool, size_t n_items) {
    static struct loop loop;
    memset(&loop, 0, sizeof loop);
    loop.pool = pool;
    st_pool_run(pool, count, &loop, n_items);
    size_t n = 0;
    for (size_t i = 0; i < MAX_ITEMS; i++) assert_int_equal(loop.n_runs[i], i < n_items ? 1 : 0);
    for (size_t i = 0; i < MAX_THREADS; i++) n += loop.per_worker[i];
    assert_int_equal(n, n_items);
    assert_false(loop.bad_worker);
}

static void thread_pool_runs_each_item_once(void **state) {
    (void)state;
    static const size_t n_threads[] = {1, 2, 3, MAX_THREADS}, n_items[] = {0, 1, 2, 7, MAX_ITEMS};
    for (size_t t = 0; t < sizeof n_threads / sizeof *n_threads; t++) {
        struct st_pool *pool;
        assert_int_equal(st_pool_open(n_threads[t], &pool), STINT_OK);
        assert_int_equal(st_pool_threads(pool), n_threads[t]);
        for (size_t i = 0; i < sizeof n_items / sizeof *n_items; i++) check_loop(pool, n_items[i]);
        for (int i = 0; i < 100; i++) check_loop(pool, ts_random_below(20));
        st_pool_close(pool);
    }
}

static void count_range(void *context, size_t from, size_t to, size_t worker) {
    struct loop *loop = context;
    if (from >= to) loop->bad_range = true;
    if (to < loop->n_items && (to - from) % loop->least != 0) loop->bad_range = true;
    for (size_t i = from; i < to; i++) count(context, i, worker);
    loop->n_ranges++;
}

// Each item once, in ranges that are long at first: there are few.
static void check_ranges(struct st_pool *pool, size_t n_items, size_t least) {
    static struct loop loop;
    memset(&loop, 0, sizeof loop);
    loop.pool = pool;
    loop.n_items = n_items;
    loop.least = least;
    st_pool_run_ranges(pool, count_range, &loop, n_items, least);
    for (size_t i = 0; i < MAX_ITEMS; i++) assert_int_equal(loop.n_runs[i], i < n_items ? 1 : 0);
    assert_false(loop.bad_worker || loop.bad_range);
    // A part is halved until `least` is left, and so is what others take of it.
    size_t shares = 2 * st_pool_threads(pool);
    assert_true(loop.n_ranges <= 9 * shares && (n_items == 0) == (loop.n_ranges == 0));
}

static void ranges_make_up_the_whole(void **state) {
    (void)state;
    for (size_t n_threads = 1; n_threads <= MAX_THREADS; n_threads++) {
        struct st_pool *pool;
        assert_int_equal(st_pool_open(n_threads, &pool), STINT_OK);
        for (int i = 0; i < 100; i++)
            check_ranges(pool, ts_random_below(MAX_ITEMS + 1), 1 + ts_random_below(20));
        check_ranges(pool, 0, 8);
        check_ranges(pool, 8, 8);
        check_ranges(pool, MAX_ITEMS, 1);
        st_pool_close(pool);
    }
}

static void thread_pool_wakes_workers_that_have_parked(void **state) {
    (void)state;
    struct st_pool *pool;
    assert_int_equal(st_pool_open(3, &pool), STINT_OK);
    for (int i = 0; i < 20; i++) {
        struct timespec pause = {.tv_nsec = (long)ts_random_below(400000)};
        nanosleep(&pause, NULL); // around the time after which a worker parks
        check_loop(pool, 50);
    }
    st_pool_close(pool);
}

struct shared_work {
    size_t n_items, inputs[64], outputs[64];
};

static void square(void *context, size_t item, size_t worker) {
    (void)worker;
    struct shared_work *work = context;
    work->outputs[item] = work->inputs[item] * work->inputs[item];
}

static void thread_pool_hands_over_plain_memory_both_ways(void **state) {
    (void)state;
    struct st_pool *pool;
    struct shared_work work = {.n_items = 64};
    assert_int_equal(st_pool_open(4, &pool), STINT_OK);
    for (size_t round = 0; round < 300; round++) {
        for (size_t i = 0; i < work.n_items; i++) work.inputs[i] = round + i;
        st_pool_run(pool, square, &work, work.n_items);
        for (size_t i = 0; i < work.n_items; i++)
            assert_int_equal(work.outputs[i], (round + i) * (round + i));
    }
    st_pool_close(pool);
}

static void thread_pool_allocates_nothing_in_a_loop(void **state) {
    (void)state;
    struct st_pool *pool;
    struct shared_work work = {.n_items = 64};
    assert_int_equal(st_pool_open(2, &pool), STINT_OK);
    ts_fail_allocation(0);
    for (int i = 0; i < 50; i++) st_pool_run(pool, square, &work, work.n_items);
    assert_int_equal(ts_allocations(), 0);
    st_pool_close(pool);
}

static void thread_pool_of_default_size_has_one_thread_per_core(void **state) {
    (void)state;
    struct st_pool *pool;
    assert_int_equal(st_pool_open(0, &pool), STINT_OK);
    assert_int_equal(st_pool_threads(pool), st_cpu_cores());
    st_pool_close(pool);
    st_pool_close(NULL);
}

static void thread_pool_leaves_signals_to_the_programs_threads(void **state) {
    (void)state;
    struct st_pool *pool;
    sigset_t user, before;
    assert_int_equal(st_pool_open(4, &pool), STINT_OK);
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &user, &before), 0);
    assert_int_equal(kill(getpid(), SIGUSR1), 0); // a worker that took it would end the process
    assert_int_equal(sigtimedwait(&user, NULL, &(struct timespec){.tv_sec = 60}), SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    st_pool_close(pool);
}

static void thread_pool_opens_whole_or_not_at_all(void **state) {
    (void)state;
    struct st_pool *pool = NULL;
    size_t n = 1;
    for (;; n++) {
        ts_fail_allocation(n);
        stint_status status = st_pool_open(3, &pool);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        if (!failed) break;
        assert_int_equal(status, STINT_E_NOMEM);
        assert_null(pool);
    }
    assert_true(n > 3);
    check_loop(pool, 10);
    st_pool_close(pool);
}

// Stands before the system's: only so many threads can be started, if it is set.
static atomic_int threads_left = -1;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *context) {
    union {
        void *pointer;
        int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    } real = {dlsym(RTLD_NEXT, "pthread_create")};
    if (atomic_load(&threads_left) == 0) return EAGAIN;
    if (atomic_load(&threads_left) > 0) atomic_fetch_sub(&threads_left, 1);
    return real.create(thread, attributes, run, context);
}

static void a_thread_that_cannot_start_is_named(void **state) {
    (void)state;
    static const char *const texts[] = {"thread 2 of 4 cannot be started: Resource temporarily "
                                        "unavailable; use fewer with --threads",
                                        "thread 3 of 4 cannot be started: Resource temporarily "
                                        "unavailable; use fewer with --threads"};
    for (int n = 0; n < 2; n++) {
        struct st_pool *pool = NULL;
        atomic_store(&threads_left, n);
        assert_int_equal(st_pool_open(4, &pool), STINT_E_NOMEM);
        atomic_store(&threads_left, -1);
        assert_string_equal(st_error_text(), texts[n]);
        assert_null(pool);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thread_pool_runs_each_item_once),
        cmocka_unit_test(ranges_make_up_the_whole),
        cmocka_unit_test(thread_pool_wakes_workers_that_have_parked),
        cmocka_unit_test(thread_pool_hands_over_plain_memory_both_ways),
        cmocka_unit_test(thread_pool_allocates_nothing_in_a_loop),
        cmocka_unit_test(thread_pool_of_default_size_has_one_thread_per_core),
        cmocka_unit_test(thread_pool_leaves_signals_to_the_programs_threads),
        cmocka_unit_test(thread_pool_opens_whole_or_not_at_all),
        cmocka_unit_test(a_thread_that_cannot_start_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

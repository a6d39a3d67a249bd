// SPDX-License-Identifier: Apache-2.0
// A loop is open from the moment its number is announced until its caller finds no item left. A
// worker enters an open loop, takes items, and leaves; the caller then waits for those inside
// alone, so a worker that wakes up late delays nobody. Workers look for the next loop for a while,
// then sleep on a condition variable.
//
// Each thread has a part of the items and takes halves of what is left of it, from the front, so
// that what it reads goes on where it was. A thread whose part is done takes halves of what is left
// of the others', from their ends.
//
// gate = number of the loop << 32 | OPEN | workers inside. Invariant: loop and parts are written
// only while the loop is closed and nobody is inside.
#include "base/thread.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "base/size.h"
#include "base/thread_start.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SPIN_NS = 100000, LINE = 64 };

#define OPEN   ((uint64_t)1 << 31)
#define INSIDE (OPEN - 1)

struct loop {
    st_pool_range_fn *fn;
    void *context;
    size_t n_items;
    size_t least; // of a range
};

// What nobody has taken yet, in ranges of loop.least: number of the first << 32 | of that behind
// the last.
struct part {
    _Alignas(LINE) _Atomic uint64_t left;
};

struct st_pool {
    size_t n_threads;
    pthread_t *threads; // [n_threads - 1]
    struct loop loop;   // that runs
    struct part *parts; // [n_threads] of the loop
    _Alignas(LINE) _Atomic uint64_t gate;
    _Alignas(LINE) atomic_uint n_sleepers; // workers on the condition variable
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    atomic_bool closing;
};

struct worker {
    struct st_pool *pool;
    size_t index;
};

static uint64_t part_of(size_t first, size_t end) {
    return (uint64_t)first << 32 | end;
}

// Takes half of what is left of a part, from its front, or from its end for who has none left.
static bool take_half(_Atomic uint64_t *part, bool front, size_t *first, size_t *end) {
    uint64_t left = atomic_load_explicit(part, memory_order_relaxed), now;
    do {
        *first = left >> 32;
        *end = left & UINT32_MAX;
        if (*first == *end) return false;
        size_t half = st_ceil_div(*end - *first, 2);
        now = front ? part_of(*first + half, *end) : part_of(*first, *end - half);
        if (front)
            *end = *first + half;
        else
            *first = *end - half;
    } while (!atomic_compare_exchange_weak_explicit(part, &left, now, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

static void take_items(struct st_pool *pool, size_t worker) {
    const struct loop *l = &pool->loop;
    size_t first, end;
    for (size_t i = 0; i < pool->n_threads; i++) {
        struct part *part = &pool->parts[(worker + i) % pool->n_threads];
        while (take_half(&part->left, i == 0, &first, &end))
            l->fn(l->context, first * l->least, st_min(end * l->least, l->n_items), worker);
    }
}

static uint32_t number_of(uint64_t gate) {
    return (uint32_t)(gate >> 32);
}

// Waits until the loop has another number than `seen`; returns it.
static uint32_t wait_for_loop(struct st_pool *pool, uint32_t seen) {
    uint64_t until = st_now_ns() + SPIN_NS;
    for (unsigned turn = 1;; turn++) {
        uint32_t now = number_of(atomic_load_explicit(&pool->gate, memory_order_acquire));
        if (now != seen) return now;
        st_thread_relax();
        if (turn % 64 == 0 && st_now_ns() > until) break;
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->n_sleepers, 1);
    uint32_t now;
    while ((now = number_of(atomic_load(&pool->gate))) == seen)
        pthread_cond_wait(&pool->wake, &pool->mutex);
    atomic_fetch_sub(&pool->n_sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
    return now;
}

// False if the loop of that number is over.
static bool enter(struct st_pool *pool, uint32_t number) {
    uint64_t gate = atomic_load_explicit(&pool->gate, memory_order_relaxed);
    while (number_of(gate) == number && (gate & OPEN))
        if (atomic_compare_exchange_weak_explicit(&pool->gate, &gate, gate + 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

static void *work(void *argument) {
    struct worker self = *(struct worker *)argument;
    struct st_pool *pool = self.pool;
    free(argument);
    for (uint32_t seen = 0;;) {
        seen = wait_for_loop(pool, seen);
        if (atomic_load(&pool->closing)) return NULL;
        if (!enter(pool, seen)) continue;
        take_items(pool, self.index);
        atomic_fetch_sub_explicit(&pool->gate, 1, memory_order_release);
    }
}

// The next number, with the loop open or not; wakes who sleeps.
static void announce(struct st_pool *pool, uint64_t open) {
    uint32_t number = number_of(atomic_load_explicit(&pool->gate, memory_order_relaxed)) + 1;
    atomic_store(&pool->gate, (uint64_t)number << 32 | open);
    if (atomic_load(&pool->n_sleepers) == 0) return;
    pthread_mutex_lock(&pool->mutex); // a worker between its last look and its wait holds it
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
}

static stint_status start_worker(struct st_pool *pool, size_t index, size_t n_threads) {
    struct worker *worker = malloc(sizeof *worker);
    if (!worker) return st_fail(STINT_E_NOMEM, "no memory for a thread");
    *worker = (struct worker){pool, index};
    int error = st_thread_start(&pool->threads[index - 1], work, worker);
    if (error != 0) {
        free(worker);
        return st_fail(STINT_E_NOMEM,
                       "thread %zu of %zu cannot be started: %s; use fewer with --threads",
                       index + 1, n_threads, strerror(error));
    }
    return STINT_OK;
}

stint_status st_pool_open(size_t n_threads, struct st_pool **pool) {
    if (n_threads == 0) n_threads = st_cpu_cores();
    struct st_pool *p = aligned_alloc(LINE, sizeof *p);
    if (!p) return st_fail(STINT_E_NOMEM, "no memory for a thread pool");
    *p = (struct st_pool){.n_threads = 1};
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->wake, NULL);
    p->threads = calloc(n_threads, sizeof *p->threads);
    p->parts = aligned_alloc(LINE, n_threads * sizeof *p->parts);
    stint_status status =
        p->threads && p->parts ? STINT_OK : st_fail(STINT_E_NOMEM, "no memory for a thread pool");
    for (size_t i = 1; status == STINT_OK && i < n_threads; i++) {
        status = start_worker(p, i, n_threads);
        if (status == STINT_OK) p->n_threads++;
    }
    if (status != STINT_OK) {
        st_pool_close(p);
        return status;
    }
    *pool = p;
    return STINT_OK;
}

void st_pool_close(struct st_pool *pool) {
    if (!pool) return;
    atomic_store(&pool->closing, true);
    announce(pool, 0);
    for (size_t i = 1; i < pool->n_threads; i++) pthread_join(pool->threads[i - 1], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->threads);
    free(pool->parts);
    free(pool);
}

size_t st_pool_threads(const struct st_pool *pool) {
    return pool->n_threads;
}

static void run(struct st_pool *pool, const struct loop *loop) {
    pool->loop = *loop;
    size_t n = st_ceil_div(loop->n_items, loop->least);
    for (size_t i = 0; i < pool->n_threads; i++)
        atomic_store_explicit(&pool->parts[i].left,
                              part_of(n * i / pool->n_threads, n * (i + 1) / pool->n_threads),
                              memory_order_relaxed);
    announce(pool, OPEN);
    take_items(pool, 0);
    atomic_fetch_and_explicit(&pool->gate, ~OPEN, memory_order_relaxed);
    for (unsigned turn = 1; atomic_load_explicit(&pool->gate, memory_order_acquire) & INSIDE;
         turn++) {
        st_thread_relax();
        if (turn % 4096 == 0) sched_yield(); // more threads than cores: let them finish
    }
}

void st_pool_run_ranges(struct st_pool *pool, st_pool_range_fn *fn, void *context, size_t n,
                        size_t least) {
    size_t fits = least * (n / least / UINT32_MAX + 1); // so many ranges have a number
    const struct loop loop = {fn, context, n, fits};
    if (pool->n_threads > 1 && n > least)
        run(pool, &loop);
    else if (n > 0)
        fn(context, 0, n, 0);
}

struct items {
    st_pool_fn *fn;
    void *context;
};

static void run_items(void *context, size_t from, size_t to, size_t worker) {
    const struct items *items = context;
    for (size_t i = from; i < to; i++) items->fn(items->context, i, worker);
}

void st_pool_run(struct st_pool *pool, st_pool_fn *fn, void *context, size_t n_items) {
    struct items items = {fn, context};
    st_pool_run_ranges(pool, run_items, &items, n_items, 1);
}

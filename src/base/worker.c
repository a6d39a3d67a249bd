// SPDX-License-Identifier: Apache-2.0
// Both sides look for the other for a while before they sleep, as a pool's workers do.
#include "base/worker.h"

#include "base/clock.h"
#include "base/thread_start.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

enum { SPIN_NS = 50000, TURNS = 64 };

enum state { IDLE, BEGUN, CLOSING };

struct st_worker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    atomic_int state;
    st_worker_fn *fn;
    void *context;
};

// Waits until the state is no longer `from`; returns it.
static int leave(struct st_worker *w, int from) {
    uint64_t until = st_now_ns() + SPIN_NS;
    int state;
    for (unsigned turn = 1; (state = atomic_load(&w->state)) == from; turn++) {
        st_thread_relax();
        if (turn % TURNS == 0 && st_now_ns() > until) break;
    }
    if (state != from) return state;
    pthread_mutex_lock(&w->mutex);
    while ((state = atomic_load(&w->state)) == from) pthread_cond_wait(&w->changed, &w->mutex);
    pthread_mutex_unlock(&w->mutex);
    return state;
}

static void change(struct st_worker *w, int to) {
    pthread_mutex_lock(&w->mutex);
    atomic_store(&w->state, to);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

static void *work(void *argument) {
    struct st_worker *w = argument;
    while (leave(w, IDLE) == BEGUN) {
        w->fn(w->context);
        change(w, IDLE);
    }
    return NULL;
}

stint_status st_worker_open(struct st_worker **worker) {
    struct st_worker *w = calloc(1, sizeof *w);
    if (!w) return st_fail(STINT_E_NOMEM, "no memory for a thread");
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->changed, NULL);
    if (st_thread_start(&w->thread, work, w) != 0) {
        pthread_cond_destroy(&w->changed);
        pthread_mutex_destroy(&w->mutex);
        free(w);
        return st_fail(STINT_E_NOMEM, "a thread cannot be started");
    }
    *worker = w;
    return STINT_OK;
}

void st_worker_close(struct st_worker *w) {
    if (!w) return;
    st_worker_join(w);
    change(w, CLOSING);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}

void st_worker_begin(struct st_worker *w, st_worker_fn *fn, void *context) {
    w->fn = fn;
    w->context = context;
    change(w, BEGUN);
}

void st_worker_join(struct st_worker *w) {
    leave(w, BEGUN);
}

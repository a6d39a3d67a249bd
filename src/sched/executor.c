// SPDX-License-Identifier: Apache-2.0
#include "sched/executor.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct processor {
    struct st_executor *executor;
    pthread_t thread;
    uint32_t index;
};

struct st_executor {
    pthread_mutex_t lock;
    pthread_cond_t changed; // a node has ended, a run begins or ends, or the threads must stop
    struct processor processors[ST_MAX_PROCESSORS];
    uint32_t n_processors, n_threads;
    const struct st_execution *run; // NULL: none
    uint64_t generation, begun;
    uint32_t n_working; // threads that still use `run`
    bool stop, failed;
    struct st_error why;
};

// Called with the lock held; releases it while a node runs.
static void run_node(struct st_executor *e, uint32_t node) {
    const struct st_execution *run = e->run;
    pthread_mutex_unlock(&e->lock);
    struct st_node_time time = {0};
    uint64_t begin = st_now_ns();
    stint_status status = run->fn(run->context, &run->dag->nodes[node], &time);
    uint64_t end = st_now_ns();
    pthread_mutex_lock(&e->lock);
    struct st_event *event = &run->timeline->events[run->timeline->n++];
    *event = st_timeline_event(run->dag, node, (double)(begin - e->begun) * 1e-9,
                               (double)(end - e->begun) * 1e-9);
    event->time = time;
    if (status == STINT_OK) {
        st_schedule_done(run->schedule, node);
    } else if (!e->failed) {
        e->failed = true;
        st_error_save(&e->why);
    }
    pthread_cond_broadcast(&e->changed);
}

// Called with the lock held.
static void work(struct st_executor *e, uint32_t processor) {
    while (!e->failed && e->run->schedule->n_left > 0) {
        uint32_t node = st_schedule_pick(e->run->schedule, processor);
        if (node == ST_NO_NODE)
            pthread_cond_wait(&e->changed, &e->lock);
        else
            run_node(e, node);
    }
    e->n_working--;
    pthread_cond_broadcast(&e->changed);
}

static void *thread_main(void *context) {
    const struct processor *p = context;
    struct st_executor *e = p->executor;
    uint64_t seen = 0;
    pthread_mutex_lock(&e->lock);
    while (!e->stop) {
        if (e->generation == seen) {
            pthread_cond_wait(&e->changed, &e->lock);
            continue;
        }
        seen = e->generation;
        work(e, p->index);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

stint_status st_executor_open(uint32_t n_processors, struct st_executor **executor) {
    struct st_executor *e = calloc(1, sizeof *e);
    if (!e) return st_fail(STINT_E_NOMEM, "no memory for an executor");
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    e->n_processors = n_processors;
    for (uint32_t p = 1; p < n_processors; p++) {
        e->processors[p] = (struct processor){.executor = e, .index = p};
        int error = pthread_create(&e->processors[p].thread, NULL, thread_main, &e->processors[p]);
        if (error != 0) {
            st_executor_close(e);
            return st_fail(STINT_E_NOMEM, "the thread of a second processor cannot be started: %s",
                           strerror(error));
        }
        e->n_threads = p;
    }
    *executor = e;
    return STINT_OK;
}

void st_executor_close(struct st_executor *e) {
    if (!e) return;
    pthread_mutex_lock(&e->lock);
    e->stop = true;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
    for (uint32_t p = 1; p <= e->n_threads; p++) pthread_join(e->processors[p].thread, NULL);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

stint_status st_executor_run(struct st_executor *e, const struct st_execution *run) {
    if (run->dag->n_processors > e->n_processors)
        return st_fail(STINT_E_INTERNAL, "a graph for %u processors, there are %u",
                       run->dag->n_processors, e->n_processors);
    pthread_mutex_lock(&e->lock);
    st_schedule_begin(run->schedule, run->dag, run->policy);
    run->timeline->n = 0;
    e->run = run;
    e->failed = false;
    e->begun = st_now_ns();
    e->n_working = e->n_processors;
    e->generation++;
    pthread_cond_broadcast(&e->changed);
    work(e, 0);
    while (e->n_working > 0) pthread_cond_wait(&e->changed, &e->lock);
    e->run = NULL;
    bool failed = e->failed;
    pthread_mutex_unlock(&e->lock);
    return failed ? st_error_restore(&e->why) : STINT_OK;
}

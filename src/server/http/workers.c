// SPDX-License-Identifier: Apache-2.0
#include "server/http/workers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct st_workers {
    pthread_mutex_t lock;
    pthread_cond_t given;
    struct st_work *first, *last; // waiting
    bool closing;
    size_t n_threads;
    pthread_t threads[]; // [n_threads]
};

static void *run(void *context) {
    struct st_workers *w = context;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        struct st_work *work = w->first;
        if (work == NULL && w->closing) break;
        if (work == NULL) {
            pthread_cond_wait(&w->given, &w->lock);
            continue;
        }
        w->first = work->next;
        if (w->first == NULL) w->last = NULL;
        pthread_mutex_unlock(&w->lock);
        work->run(work->context);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

stint_status st_workers_open(size_t n_threads, struct st_workers **workers) {
    struct st_workers *w = calloc(1, sizeof *w + n_threads * sizeof *w->threads);
    if (w == NULL) return st_fail(STINT_E_NOMEM, "no memory for the server's threads");
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->given, NULL);
    while (w->n_threads < n_threads && pthread_create(&w->threads[w->n_threads], NULL, run, w) == 0)
        w->n_threads++;
    if (w->n_threads < n_threads) {
        st_workers_close(w);
        return st_fail(STINT_E_NOMEM, "the system gives the server no more threads");
    }
    *workers = w;
    return STINT_OK;
}

void st_workers_close(struct st_workers *w) {
    if (w == NULL) return;
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_broadcast(&w->given);
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < w->n_threads; i++) pthread_join(w->threads[i], NULL);
    pthread_cond_destroy(&w->given);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void st_workers_give(struct st_workers *w, struct st_work *work) {
    work->next = NULL;
    pthread_mutex_lock(&w->lock);
    if (w->last != NULL)
        w->last->next = work;
    else
        w->first = work;
    w->last = work;
    pthread_cond_signal(&w->given);
    pthread_mutex_unlock(&w->lock);
}

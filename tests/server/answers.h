// SPDX-License-Identifier: Apache-2.0
// Greedy answers of a request scheduler, waited for.
#ifndef TESTS_ANSWERS_H
#define TESTS_ANSWERS_H

#include "server/scheduler/scheduler.h"
#include "support/support.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { TS_ANSWER_TOKENS = 6, TS_ANSWER_MAX_IDS = 80 };

static const stint_session_options session_options = {
    .size = sizeof(stint_session_options), .n_context = 128, .n_threads = 1, .chunk_len = 16};

static inline struct st_scheduler *open_scheduler_for(const stint_model *m, uint32_t n_slots,
                                                      uint32_t n_context) {
    struct st_scheduler *s = NULL;
    stint_session_options session = session_options;
    session.n_sequences = n_slots;
    session.n_context = n_context;
    const struct st_scheduler_options o = {.model = m, .session = &session, .n_queue = 8};
    if (st_scheduler_open(&o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

static inline struct st_scheduler *open_scheduler(const stint_model *m, uint32_t n_slots) {
    return open_scheduler_for(m, n_slots, session_options.n_context);
}

struct answer {
    pthread_mutex_t lock;
    pthread_cond_t ended, waits;
    bool held;  // it stops the scheduler at its first token, until it is let go
    bool stops; // it has done so
    int32_t ids[TS_ANSWER_MAX_IDS];
    size_t n_ids, reused;
    enum st_scheduler_end end;
    stint_status status;
};

static inline void take_event(void *context, const struct st_scheduler_event *event) {
    struct answer *a = context;
    pthread_mutex_lock(&a->lock);
    if (event->token && a->n_ids < TS_ANSWER_MAX_IDS) a->ids[a->n_ids++] = event->token->id;
    a->stops = a->held;
    pthread_cond_broadcast(&a->waits);
    while (a->held) pthread_cond_wait(&a->waits, &a->lock);
    if (event->end != ST_SCHEDULER_GOES_ON) {
        a->status = event->status;
        a->reused = event->usage->reused_tokens;
        a->end = event->end;
        pthread_cond_signal(&a->ended);
    }
    pthread_mutex_unlock(&a->lock);
}

static inline void submit(struct st_scheduler *s, const struct st_scheduler_request *r,
                          struct answer *a) {
    uint64_t ticket;
    if (st_scheduler_submit(s, r, take_event, a, &ticket) != STINT_OK)
        fail_msg("%s", stint_error_text());
}

static inline void wait_end(struct answer *a) {
    pthread_mutex_lock(&a->lock);
    while (a->end == ST_SCHEDULER_GOES_ON) pthread_cond_wait(&a->ended, &a->lock);
    pthread_mutex_unlock(&a->lock);
}

#define NEW_ANSWER                                                                                 \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER,                      \
        .waits = PTHREAD_COND_INITIALIZER                                                          \
    }

static inline struct answer ask(struct st_scheduler *s, const int32_t *prompt, size_t n) {
    struct answer a = NEW_ANSWER;
    const struct st_scheduler_request r = {
        .prompt = prompt, .n_prompt = n, .options.max_tokens = TS_ANSWER_TOKENS};
    submit(s, &r, &a);
    wait_end(&a);
    return a;
}

#endif

// SPDX-License-Identifier: Apache-2.0
// Slots that answer at the same time take their steps together, as many as a step has rows.
#include "server/scheduler/scheduler.h"
#include "support/support.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { N_PROMPT = 8, N_CONTEXT = 128 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static size_t n_ended;

static void count_end(void *context, const struct st_scheduler_event *event) {
    (void)context;
    if (event->end == ST_SCHEDULER_GOES_ON) return;
    pthread_mutex_lock(&lock);
    n_ended++;
    pthread_cond_signal(&ended);
    pthread_mutex_unlock(&lock);
}

// Holds the request scheduler's thread until the gate is open.
static void wait_at_gate(void *context, const struct st_scheduler_event *event) {
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    count_end(context, event);
}

static void submit_all(struct st_scheduler *e, size_t n, uint32_t n_tokens) {
    uint64_t ticket;
    pthread_mutex_lock(&gate);
    for (size_t i = 0; i < n; i++) {
        int32_t prompt[N_PROMPT];
        for (size_t j = 0; j < N_PROMPT; j++) prompt[j] = (int32_t)(3 + ts_random_below(4000));
        struct st_scheduler_request r = {
            .prompt = prompt, .n_prompt = N_PROMPT, .options.max_tokens = n_tokens};
        assert_int_equal(st_scheduler_submit(e, &r, i ? count_end : wait_at_gate, NULL, &ticket),
                         STINT_OK);
    }
    pthread_mutex_unlock(&gate);
    pthread_mutex_lock(&lock);
    while (n_ended < n) pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
}

// Prompts of one chunk: after as many rounds as there are slots all answer, one step for all.
static void all_slots_share_a_step(void **state) {
    (void)state;
    enum { N = STINT_MAX_STEP_ROWS, TOKENS = 3 * N };
    stint_model *model = NULL;
    struct st_scheduler *e = NULL;
    struct st_scheduler_stats stats;
    assert_int_equal(stint_model_open(STINT_SOURCE_DIR "/models/novels-10m", NULL, &model),
                     STINT_OK);
    stint_session_options session = {
        .size = sizeof session, .n_threads = 2, .n_context = N_CONTEXT, .n_sequences = N};
    struct st_scheduler_options o = {.model = model, .session = &session, .n_queue = N};
    assert_int_equal(st_scheduler_open(&o, &e), STINT_OK);
    submit_all(e, N, TOKENS);
    st_scheduler_stats(e, &stats);
    assert_int_equal(stats.generated_tokens, N * TOKENS);
    assert_true(stats.decode_steps <= TOKENS + N);
    st_scheduler_close(e);
    stint_model_close(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_slots_share_a_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

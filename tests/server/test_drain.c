// SPDX-License-Identifier: Apache-2.0
// The time of day is set while a server drains: the seconds that it waits are those that pass.
#include "server/scheduler/scheduler.h"
#include "support/support.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

// Stands before the system's: programs here read a time of day that is an hour ahead of the one
// that the kernel waits by, as if it were set back in between.
int clock_gettime(clockid_t id, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, id, now);
    if (id == CLOCK_REALTIME) now->tv_sec += 3600;
    return result;
}

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open, reached, ended;
};

static void wait_at_gate(void *context, const struct st_scheduler_event *event) {
    struct gate *gate = context;
    pthread_mutex_lock(&gate->lock);
    gate->reached = true;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->open) pthread_cond_wait(&gate->changed, &gate->lock);
    gate->ended = event->end != ST_SCHEDULER_GOES_ON;
    pthread_mutex_unlock(&gate->lock);
}

static void draining_ends_in_time(void **state) {
    (void)state;
    stint_model *model = NULL;
    struct st_scheduler *s = NULL;
    static const int32_t prompt[] = {5, 6, 7};
    struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    stint_session_options session = {.size = sizeof session, .n_threads = 1, .n_context = 32};
    assert_int_equal(stint_model_open(ts_trained(), NULL, &model), STINT_OK);
    const struct st_scheduler_options o = {.model = model, .session = &session, .n_queue = 1};
    assert_int_equal(st_scheduler_open(&o, &s), STINT_OK);
    const struct st_scheduler_request r = {
        .prompt = prompt, .n_prompt = 3, .options.max_tokens = 2};
    uint64_t ticket;
    assert_int_equal(st_scheduler_submit(s, &r, wait_at_gate, &gate, &ticket), STINT_OK);
    pthread_mutex_lock(&gate.lock);
    while (!gate.reached) pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    alarm(120); // an hour would end here
    assert_false(st_scheduler_drain(s, 0.01));
    alarm(0);
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    assert_true(st_scheduler_drain(s, 600));
    assert_true(gate.ended);
    st_scheduler_close(s);
    stint_model_close(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draining_ends_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

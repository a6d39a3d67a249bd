// SPDX-License-Identifier: Apache-2.0
// CLOCK_MONOTONIC: never set back, stands still while the machine sleeps.
#include "base/clock.h"

#include <errno.h>
#include <time.h>

uint64_t st_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void st_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool st_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns) {
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                                   .tv_nsec = (long)(until_ns % 1000000000u)};
    return pthread_cond_timedwait(cond, mutex, &until) != ETIMEDOUT;
}

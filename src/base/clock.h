// SPDX-License-Identifier: Apache-2.0
// Monotonic time.
#ifndef ST_BASE_CLOCK_H
#define ST_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

uint64_t st_now_ns(void);

// A condition whose waits are by this clock, so that they do not depend on the time of day, which
// may be set at any moment. Destroy it with pthread_cond_destroy.
void st_cond_init(pthread_cond_t *cond);
// False once that time has come. pre: made by st_cond_init; the mutex is locked.
bool st_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns);

#endif

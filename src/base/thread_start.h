// SPDX-License-Identifier: Apache-2.0
// What all threads of the library begin with, and what they do while they look for work.
#ifndef ST_BASE_THREAD_START_H
#define ST_BASE_THREAD_START_H

#include <pthread.h>

// Starts a thread that takes no signal that is sent to the process, which would fall to whichever
// thread lets it through: those are for the program's own threads. Those that its own faults raise
// stay. Returns 0, or an error of pthread_create().
int st_thread_start(pthread_t *thread, void *(*fn)(void *), void *context);

// Between two looks at what another thread will write.
static inline void st_thread_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif

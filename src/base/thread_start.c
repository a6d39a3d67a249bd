// SPDX-License-Identifier: Apache-2.0
#include "base/thread_start.h"

#include <signal.h>
#include <stddef.h>

int st_thread_start(pthread_t *thread, void *(*fn)(void *), void *context) {
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF};
    sigset_t deaf, before;
    sigfillset(&deaf);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&deaf, own[i]);
    pthread_sigmask(SIG_SETMASK, &deaf, &before);
    int error = pthread_create(thread, NULL, fn, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

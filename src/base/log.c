// SPDX-License-Identifier: Apache-2.0
// The callback is the one piece of process-wide state: set once, before other calls.
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static struct {
    pthread_mutex_t mutex;
    stint_log_fn *fn;
    void *context;
    stint_log_level level;
} sink = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void stint_log_set(stint_log_fn *fn, void *context, stint_log_level level) {
    pthread_mutex_lock(&sink.mutex);
    sink.fn = fn;
    sink.context = context;
    sink.level = level;
    pthread_mutex_unlock(&sink.mutex);
}

void st_log(stint_log_level level, const char *format, ...) {
    char text[1024];
    va_list arguments;
    pthread_mutex_lock(&sink.mutex);
    if (sink.fn && level <= sink.level) {
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        sink.fn(sink.context, level, text);
    }
    pthread_mutex_unlock(&sink.mutex);
}

// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD under which the time of day is set forwards and back all the time: it is
// a day ahead or behind, by chance, each time that it is asked for. Spans of time that are measured
// or waited for by it come out wrong: by two days, or too long by one. With CLOCK_RATE=N in the
// environment the monotonic clock runs N times as fast since it was first asked for: N times what
// it shows on a machine that has run for days is more nanoseconds than fit.
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { DAY = 24 * 3600, SECOND = 1000000000 };

static _Atomic unsigned n_asked;
static _Atomic long long begun; // of the monotonic clock, nanoseconds

static void hurry(struct timespec *now) {
    const char *rate = getenv("CLOCK_RATE");
    if (!rate) return;
    long long time = now->tv_sec * (long long)SECOND + now->tv_nsec, unset = 0;
    atomic_compare_exchange_strong(&begun, &unset, time);
    time = begun + (time - begun) * atoi(rate);
    *now = (struct timespec){time / SECOND, time % SECOND};
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *now) {
    int rc = (int)syscall(SYS_clock_gettime, clock, now);
    if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += (atomic_fetch_add(&n_asked, 1) * 2654435761u) >> 31 ? -DAY : DAY;
    if (rc == 0 && clock == CLOCK_MONOTONIC) hurry(now);
    return rc;
}

EXPORT int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    *now = (struct timeval){exact.tv_sec, exact.tv_nsec / 1000};
    return 0;
}

EXPORT time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}

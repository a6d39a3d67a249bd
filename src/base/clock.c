// SPDX-License-Identifier: Apache-2.0
// CLOCK_MONOTONIC: never set back, stands still while the machine sleeps.
#include "base/clock.h"

#include <time.h>

uint64_t st_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

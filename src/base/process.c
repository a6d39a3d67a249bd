// SPDX-License-Identifier: Apache-2.0
// What the system counts about this process.
#include "stint.h"

#include <sys/resource.h>

uint64_t stint_peak_rss_bytes(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    return (uint64_t)usage.ru_maxrss * 1024;
}

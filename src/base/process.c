// SPDX-License-Identifier: Apache-2.0
// What the system counts about this process.
#include "base/process.h"

#include "stint.h"

#include <fcntl.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/resource.h>
#include <unistd.h>

uint64_t stint_peak_rss_bytes(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    return (uint64_t)usage.ru_maxrss * 1024;
}

// statm: pages in all, resident, and of those a file's or shared.
uint64_t st_process_anonymous_bytes(void) {
    char text[128];
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    if (n <= 0) return 0;
    text[n] = 0;
    char *at = text;
    unsigned long long pages[3];
    for (int i = 0; i < 3; i++) pages[i] = strtoull(at, &at, 10);
    return pages[1] > pages[2] ? (pages[1] - pages[2]) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

void st_process_give_blocks_back(void) {
#ifdef __GLIBC__
    enum { BYTES = 256 << 10 };
    mallopt(M_MMAP_THRESHOLD, BYTES);
    mallopt(M_TRIM_THRESHOLD, BYTES);
#endif
}

void st_process_trim(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

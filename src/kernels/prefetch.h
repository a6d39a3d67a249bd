// SPDX-License-Identifier: Apache-2.0
// Asking memory for what a stream is about to read. What is read once goes past the caches that it
// would only pass through.
#ifndef ST_KERNELS_PREFETCH_H
#define ST_KERNELS_PREFETCH_H

#include <stddef.h>

enum { ST_CACHE_LINE = 64, ST_PREFETCH_AHEAD = 4096 }; // bytes

// For the lines of at[0, bytes), those so far ahead; that they may lie outside of any object does
// no harm.
static inline __attribute__((always_inline)) void st_prefetch(const void *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += ST_CACHE_LINE)
        __builtin_prefetch((const char *)at + ST_PREFETCH_AHEAD + i, 0, 0);
}

#endif

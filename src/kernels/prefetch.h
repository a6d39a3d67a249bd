// SPDX-License-Identifier: Apache-2.0
// Prefetches what a stream is about to read, to all caches: a model may fit the last one, and then
// the next token finds it there. Where it does not, it goes through them at the same speed.
#ifndef ST_KERNELS_PREFETCH_H
#define ST_KERNELS_PREFETCH_H

#include <stddef.h>

enum { ST_CACHE_LINE = 64, ST_PREFETCH_AHEAD = 4096, ST_STREAM_MIN = 65536 }; // bytes

// Prefetches the lines ST_PREFETCH_AHEAD bytes after those of at[0, bytes). They may lie outside of
// any object: a prefetch never faults.
static inline __attribute__((always_inline)) void st_prefetch(const void *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += ST_CACHE_LINE)
        __builtin_prefetch((const char *)at + ST_PREFETCH_AHEAD + i, 0, 3);
}

// Prefetches the lines of at[0, bytes) to all caches, because they are used soon.
static inline void st_prefetch_soon(const void *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += ST_CACHE_LINE)
        __builtin_prefetch((const char *)at + i, 0, 3);
}

// A core reads two long streams faster than one: of rows that lie one after another, the upper and
// the lower half are taken in turns. Returns the rows of a half; 0: they are too short for two.
static inline size_t st_stream_rows(size_t n_rows, size_t row_bytes) {
    return n_rows >= ST_STREAM_MIN / row_bytes ? n_rows / 2 : 0;
}

#endif

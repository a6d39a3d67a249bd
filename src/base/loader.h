// SPDX-License-Identifier: Apache-2.0
// Reads ranges of files past the page cache, several at a time, while the caller computes: threads
// that read directly (O_DIRECT) into the caller's buffers. Where a file system has no direct reads,
// the cache is told to drop what was read.
//
// Why threads and not io_uring: docs/DECISIONS.md.
#ifndef ST_BASE_LOADER_H
#define ST_BASE_LOADER_H

#include "base/direct.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    ST_LOAD_BLOCK = ST_DIRECT_BLOCK, // offsets, buffers and their room are multiples of this
    ST_LOAD_ROOM = 32 << 10,         // of a thread, for loads of which they are not
    ST_LOADER_THREADS = 32,
    ST_LOADER_MAX_THREADS = 64,
};

enum { ST_LOAD_IDLE, ST_LOAD_PENDING, ST_LOAD_THERE, ST_LOAD_FAILED };

// A range of a file; the caller's, who leaves it and the buffer alone from ask until it is there.
struct st_load {
    uint64_t offset;
    size_t bytes;
    uint32_t file;     // which of the loader's
    unsigned char *to; // [bytes, rounded up to ST_LOAD_BLOCK]
    // Neither at blocks, nor room behind: by way of a buffer of the thread. Such loads that are
    // asked for one after another and lie close together may come in one read.
    bool apart;
    atomic_int state; // ST_LOAD_*
    struct st_load *next;
};

struct st_loader;

// As pread(). Tests give their own to play a slow or failing disk.
typedef ssize_t st_loader_read_fn(void *context, int file, void *to, size_t bytes, off_t offset);

struct st_loader_file {
    int file;         // open for reading; borrowed during the call
    const char *name; // stands in error texts; borrowed until close
};

struct st_loader_options {
    const struct st_loader_file *files; // [n_files]; borrowed during the call
    size_t n_files;
    size_t n_threads;        // 0: ST_LOADER_THREADS
    size_t max_bytes;        // of one read, a multiple of ST_LOAD_BLOCK; 0: any
    st_loader_read_fn *read; // NULL: pread
    void *context;
};

struct st_loader_counts {
    uint64_t bytes, reads; // bytes: also those between loads that came in one read
    uint64_t busy_ns;      // in which anything was being read
    uint64_t waited_ns;    // of which somebody waited
};

// STINT_E_NOMEM, E_IO.
stint_status st_loader_open(const struct st_loader_options *options, struct st_loader **loader);
void st_loader_close(struct st_loader *loader); // accepts NULL; waits for what is being read

// One thread asks and waits.
void st_loader_prefetch(struct st_loader *loader, struct st_load *load);
// True once it is there, or failed.
static inline bool st_load_is_done(const struct st_load *load) {
    int state = atomic_load_explicit(&load->state, memory_order_acquire);
    return state == ST_LOAD_THERE || state == ST_LOAD_FAILED;
}
// STINT_E_IO with the cause where it could not be read.
stint_status st_loader_wait(struct st_loader *loader, struct st_load *load);
// Waits for all that was asked, whatever became of it.
void st_loader_drain(struct st_loader *loader);
// False where a file system has no direct reads.
bool st_loader_is_direct(const struct st_loader *loader);
void st_loader_count(struct st_loader *loader, struct st_loader_counts *counts);

#endif

// SPDX-License-Identifier: Apache-2.0
// Threads for handlers that take long: tokenizing prompts, compiling schemas, reading and writing
// slots. The HTTP library's own threads stay free for requests that are answered at once. Few
// workers also bound the memory of prompts that are tokenized at the same time.
#ifndef ST_SERVER_WORKERS_H
#define ST_SERVER_WORKERS_H

#include "base/status.h"

#include <stddef.h>

struct st_workers;

// One piece of work, in memory of its owner until `run` is called; workers do not use it after.
struct st_work {
    struct st_work *next;
    void (*run)(void *context);
    void *context;
};

stint_status st_workers_open(size_t n_threads, struct st_workers **workers);
// Runs what is waiting, then ends the threads. Accepts NULL.
void st_workers_close(struct st_workers *workers);

// Runs the work on one of the threads, in the order in which works are given.
void st_workers_give(struct st_workers *workers, struct st_work *work);

#endif

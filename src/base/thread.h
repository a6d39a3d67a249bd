// SPDX-License-Identifier: Apache-2.0
// A pool that runs one parallel loop at a time: workers spin for a short while for the next loop,
// then park.
#ifndef ST_BASE_THREAD_H
#define ST_BASE_THREAD_H

#include "base/status.h"

struct st_pool;

// Called for each item in [0, n_items); `worker` in [0, st_pool_threads()) names the scratch to
// use.
typedef void st_pool_fn(void *context, size_t item, size_t worker);

// n_threads counts the caller of st_pool_run, who takes part; 0 means one per core this process may
// run on.
stint_status st_pool_open(size_t n_threads, struct st_pool **pool);
void st_pool_close(struct st_pool *pool); // accepts NULL

size_t st_pool_threads(const struct st_pool *pool);

// Runs fn over all items and returns when all are done. Each worker takes neighbouring items in
// ascending order, several at once as long as many are left; one that has none left takes some of
// another's, from the end. So few streams begin, workers seldom meet, and all end together.
// Allocates nothing. A pool with one thread runs them in the caller. One caller at a time; not
// reentrant.
void st_pool_run(struct st_pool *pool, st_pool_fn *fn, void *context, size_t n_items);

// Called for ranges [from, to) that make up [0, n).
typedef void st_pool_range_fn(void *context, size_t from, size_t to, size_t worker);

// The same in ranges of `least` items or a multiple of that, but for the last. pre: least > 0.
void st_pool_run_ranges(struct st_pool *pool, st_pool_range_fn *fn, void *context, size_t n,
                        size_t least);

#endif

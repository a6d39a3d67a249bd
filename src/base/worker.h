// SPDX-License-Identifier: Apache-2.0
// A thread that runs one thing at a time beside its caller, who may run a pool's loop meanwhile.
#ifndef ST_BASE_WORKER_H
#define ST_BASE_WORKER_H

#include "base/status.h"

struct st_worker;

typedef void st_worker_fn(void *context);

stint_status st_worker_open(struct st_worker **worker);
void st_worker_close(struct st_worker *worker); // accepts NULL; waits for what it runs

// pre: what was begun before was joined. Allocates nothing.
void st_worker_begin(struct st_worker *worker, st_worker_fn *fn, void *context);
// Waits until it has ended; at once if nothing was begun.
void st_worker_join(struct st_worker *worker);

#endif

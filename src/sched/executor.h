// SPDX-License-Identifier: Apache-2.0
// Runs a graph on real processors: a thread for each, one node at a time, in the order that a
// policy decides as nodes become ready.
#ifndef ST_SCHED_EXECUTOR_H
#define ST_SCHED_EXECUTOR_H

#include "sched/timeline.h"

struct st_executor;

// Runs one node, on the thread of its processor. What earlier nodes wrote is there to be read.
typedef stint_status st_node_fn(void *context, const struct st_node *node);

// Processor 0 will run on the thread that calls st_executor_run; the others have one each, which
// sleeps between runs.
stint_status st_executor_open(uint32_t n_processors, struct st_executor **executor);
void st_executor_close(struct st_executor *executor); // accepts NULL

struct st_execution {
    const struct st_dag *dag;
    const struct st_policy *policy;
    struct st_schedule *schedule;
    struct st_timeline *timeline; // gets what ran when; in seconds since the run began
    st_node_fn *fn;
    void *context;
};

// Returns when all nodes have run; or, after a node failed, when those that were running have
// ended, with that one's status and text. Allocates nothing.
stint_status st_executor_run(struct st_executor *executor, const struct st_execution *execution);

#endif

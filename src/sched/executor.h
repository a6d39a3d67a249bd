// SPDX-License-Identifier: Apache-2.0
// Runs a graph on real processors. Each has a thread and runs one node at a time; a policy selects
// the next node among those that are ready.
#ifndef ST_SCHED_EXECUTOR_H
#define ST_SCHED_EXECUTOR_H

#include "sched/timeline.h"

struct st_executor;

// Runs one node on the thread of its processor. The results of the nodes that it needs are visible.
// time: zeros, for what devices say.
typedef stint_status st_node_fn(void *context, const struct st_node *node,
                                struct st_node_time *time);

// Processor 0 runs on the thread that calls st_executor_run(). Each other processor has a thread of
// its own, which sleeps between runs.
stint_status st_executor_open(uint32_t n_processors, struct st_executor **executor);
void st_executor_close(struct st_executor *executor); // accepts NULL

struct st_execution {
    const struct st_dag *dag;
    const struct st_policy *policy;
    struct st_schedule *schedule;
    struct st_timeline *timeline; // filled with what ran when, in seconds since the run began
    st_node_fn *fn;
    void *context;
};

// Returns when all nodes have run. If a node fails, the nodes that are running end first, and the
// status and text of the failed one are returned. Allocates nothing.
stint_status st_executor_run(struct st_executor *executor, const struct st_execution *execution);

#endif

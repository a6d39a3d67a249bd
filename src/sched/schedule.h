// SPDX-License-Identifier: Apache-2.0
// Which ready node a processor runs next: the state of one run over a graph, and the policies. Real
// processors (sched/executor.h) and virtual time (sched/timeline.h) both drive it. Ties go to the
// lower node, so that a run is the same every time.
#ifndef ST_SCHED_SCHEDULE_H
#define ST_SCHED_SCHEDULE_H

#include "sched/dag.h"
#include "sched/policies/list.h"

#define ST_NO_NODE UINT32_MAX

struct st_schedule;

struct st_policy {
    const char *name, *about;
    // Called before a run; NULL: nothing to prepare.
    void (*begin)(struct st_schedule *schedule);
    // The priority of a ready node: the highest one runs. NULL: each processor runs its nodes in
    // ascending order and waits for the next one.
    double (*score)(const struct st_schedule *schedule, uint32_t node);
    // The policy to use instead if it ends sooner in virtual time (st_timeline_settle()); or NULL.
    const struct st_policy *fallback;
};

// Those of policies/list.h, in its order. Ends with NULL.
extern const struct st_policy *const st_policies[];
// NULL if the name is unknown.
const struct st_policy *st_policy_find(const char *name);
// The same; a NULL name is "ooo". STINT_E_ARG, whose text lists the known names.
stint_status st_policy_select(const char *name, const struct st_policy **policy);

struct st_schedule {
    const struct st_dag *dag;
    const struct st_policy *policy;
    uint32_t *needs;  // [n] number of nodes that it still waits for
    uint32_t *needed; // [n] exclusive or of their numbers: when one is left, its number
    float *gain;      // [n] seconds on the NPU, and elsewhere, [n, 2], of the nodes that only wait
                      // for this one
    float *rank;      // [n] for the policy, which fills it in `begin`
    uint32_t *ready[ST_MAX_PROCESSORS];
    uint32_t n_ready[ST_MAX_PROCESSORS];
    uint32_t *order[ST_MAX_PROCESSORS]; // each processor's nodes, ascending
    uint32_t n_order[ST_MAX_PROCESSORS], next[ST_MAX_PROCESSORS];
    uint32_t n_left;
};

// Reserves memory for graphs of so many nodes; runs twice on `arena` (base/arena.h).
void st_schedule_lay_out(struct st_schedule *schedule, uint32_t max_nodes, struct st_arena *arena);
// Begins a run over the graph; borrows it.
void st_schedule_begin(struct st_schedule *schedule, const struct st_dag *dag,
                       const struct st_policy *policy);
// Takes the next node of the processor; ST_NO_NODE if it must wait.
uint32_t st_schedule_pick(struct st_schedule *schedule, uint32_t processor);
// Tells that the node has run. Nodes that it makes ready can be picked from now on.
void st_schedule_done(struct st_schedule *schedule, uint32_t node);

#endif

// SPDX-License-Identifier: Apache-2.0
// Who ran what when: of a real run, or of one in virtual time; and what can be said of it.
#ifndef ST_SCHED_TIMELINE_H
#define ST_SCHED_TIMELINE_H

#include "sched/schedule.h"

struct st_event {
    uint32_t node, chunk;
    uint16_t layer;
    uint8_t kind, processor;
    double begin, end; // seconds since the run began
};

struct st_timeline {
    struct st_event *events; // [n] in the order of their ends; room for every node
    uint32_t n;
};

struct st_timeline_sums {
    double seconds;                 // from the first to the last
    double busy[ST_MAX_PROCESSORS]; // of each processor
    uint32_t critical;              // the processor that was busy longest
    double bubble_rate;             // share of the time in which it waited
};

void st_timeline_lay_out(struct st_timeline *timeline, uint32_t max_nodes, struct st_arena *arena);
// Runs the graph in virtual time: every node takes its seconds.
void st_timeline_simulate(struct st_schedule *schedule, const struct st_dag *dag,
                          const struct st_policy *policy, struct st_timeline *timeline);
// The policy, or its fallback where that ends sooner: a heuristic's rare mistakes cost nothing
// then.
const struct st_policy *st_timeline_settle(struct st_schedule *schedule, const struct st_dag *dag,
                                           const struct st_policy *policy,
                                           struct st_timeline *timeline);
// What ran on a node of the graph.
struct st_event st_timeline_event(const struct st_dag *dag, uint32_t node, double begin,
                                  double end);
struct st_timeline_sums st_timeline_add_up(const struct st_timeline *timeline);

#endif

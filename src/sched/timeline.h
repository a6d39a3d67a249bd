// SPDX-License-Identifier: Apache-2.0
// The timeline of a run, real or in virtual time: which processor ran which node when, and its
// statistics.
#ifndef ST_SCHED_TIMELINE_H
#define ST_SCHED_TIMELINE_H

#include "sched/schedule.h"

// What devices say of the time that a node took, in seconds; zeros where they say nothing.
struct st_node_time {
    float device; // of its jobs, by their devices' clocks
    float sync;   // from the submits of its jobs to their ends, beside that
    float excess; // what it took longer than with a device that keeps its own clock's time
};

struct st_event {
    uint32_t node, chunk;
    uint16_t layer;
    uint8_t kind, processor;
    double begin, end; // seconds since the run began
    struct st_node_time time;
};

struct st_timeline {
    struct st_event *events; // [n] in the order of their ends; capacity: every node
    uint32_t n;
};

struct st_timeline_sums {
    double seconds;                 // from the first begin to the last end
    double busy[ST_MAX_PROCESSORS]; // of each processor
    uint32_t critical;              // the processor that was busy longest
    double bubble_rate;             // share of the time in which that one was idle
};

void st_timeline_lay_out(struct st_timeline *timeline, uint32_t max_nodes, struct st_arena *arena);
// Runs the graph in virtual time: every node takes its profiled seconds.
void st_timeline_simulate(struct st_schedule *schedule, const struct st_dag *dag,
                          const struct st_policy *policy, struct st_timeline *timeline);
// The same nodes as they would have run by the devices' own clocks: sets their seconds, and
// simulates. False where no device has a clock but the host's.
bool st_timeline_replay(struct st_schedule *schedule, struct st_dag *dag,
                        const struct st_policy *policy, const struct st_timeline *timeline,
                        struct st_timeline *replay);
// Returns the policy, or its fallback if that ends sooner in virtual time. So the rare graphs on
// which a heuristic loses cost nothing.
const struct st_policy *st_timeline_settle(struct st_schedule *schedule, const struct st_dag *dag,
                                           const struct st_policy *policy,
                                           struct st_timeline *timeline);
// The event of a node that ran from `begin` to `end`.
struct st_event st_timeline_event(const struct st_dag *dag, uint32_t node, double begin,
                                  double end);
struct st_timeline_sums st_timeline_add_up(const struct st_timeline *timeline);

#endif

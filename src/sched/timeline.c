// SPDX-License-Identifier: Apache-2.0
#include "sched/timeline.h"

#include <math.h>

void st_timeline_lay_out(struct st_timeline *timeline, uint32_t max_nodes, struct st_arena *arena) {
    timeline->events = ST_TAKE(arena, struct st_event, max_nodes);
}

// What each processor runs at one moment, and until when.
struct clock {
    double now, until[ST_MAX_PROCESSORS], since[ST_MAX_PROCESSORS];
    uint32_t node[ST_MAX_PROCESSORS];
};

static void start_idle(struct clock *c, struct st_schedule *s) {
    for (uint32_t p = 0; p < s->dag->n_processors; p++) {
        if (c->node[p] != ST_NO_NODE) continue;
        c->node[p] = st_schedule_pick(s, p);
        if (c->node[p] == ST_NO_NODE) continue;
        c->since[p] = c->now;
        c->until[p] = c->now + (double)s->dag->nodes[c->node[p]].seconds;
    }
}

// Advances to the next end of a node and ends all nodes that end then. False if nothing runs.
static bool advance(struct clock *c, struct st_schedule *s, struct st_timeline *timeline) {
    double next = INFINITY;
    for (uint32_t p = 0; p < s->dag->n_processors; p++)
        if (c->node[p] != ST_NO_NODE) next = fmin(next, c->until[p]);
    if (next == INFINITY) return false;
    c->now = next;
    for (uint32_t p = 0; p < s->dag->n_processors; p++) {
        if (c->node[p] == ST_NO_NODE || c->until[p] > next) continue;
        timeline->events[timeline->n++] = st_timeline_event(s->dag, c->node[p], c->since[p], next);
        st_schedule_done(s, c->node[p]);
        c->node[p] = ST_NO_NODE;
    }
    return true;
}

void st_timeline_simulate(struct st_schedule *schedule, const struct st_dag *dag,
                          const struct st_policy *policy, struct st_timeline *timeline) {
    struct clock c = {.node = {ST_NO_NODE, ST_NO_NODE, ST_NO_NODE}};
    st_schedule_begin(schedule, dag, policy);
    timeline->n = 0;
    do start_idle(&c, schedule);
    while (advance(&c, schedule, timeline));
}

bool st_timeline_replay(struct st_schedule *schedule, struct st_dag *dag,
                        const struct st_policy *policy, const struct st_timeline *timeline,
                        struct st_timeline *replay) {
    bool differs = false;
    for (uint32_t i = 0; i < timeline->n; i++) {
        const struct st_event *e = &timeline->events[i];
        dag->nodes[e->node].seconds = fmaxf(0.0f, (float)(e->end - e->begin) - e->time.excess);
        differs = differs || fabsf(e->time.excess) > 0.0f;
    }
    replay->n = 0;
    if (differs) st_timeline_simulate(schedule, dag, policy, replay);
    return differs;
}

static double simulated_seconds(struct st_schedule *schedule, const struct st_dag *dag,
                                const struct st_policy *policy, struct st_timeline *timeline) {
    st_timeline_simulate(schedule, dag, policy, timeline);
    return st_timeline_add_up(timeline).seconds;
}

const struct st_policy *st_timeline_settle(struct st_schedule *schedule, const struct st_dag *dag,
                                           const struct st_policy *policy,
                                           struct st_timeline *timeline) {
    if (!policy->fallback) return policy;
    double seconds = simulated_seconds(schedule, dag, policy, timeline);
    double other = simulated_seconds(schedule, dag, policy->fallback, timeline);
    return other < seconds ? policy->fallback : policy;
}

struct st_event st_timeline_event(const struct st_dag *dag, uint32_t node, double begin,
                                  double end) {
    const struct st_node *n = &dag->nodes[node];
    return (struct st_event){.node = node,
                             .chunk = n->chunk,
                             .layer = n->layer,
                             .kind = n->kind,
                             .processor = n->processor,
                             .begin = begin,
                             .end = end};
}

struct st_timeline_sums st_timeline_add_up(const struct st_timeline *timeline) {
    struct st_timeline_sums sums = {0};
    double begin = INFINITY, end = -INFINITY;
    for (uint32_t i = 0; i < timeline->n; i++) {
        const struct st_event *e = &timeline->events[i];
        sums.busy[e->processor] += e->end - e->begin;
        begin = fmin(begin, e->begin);
        end = fmax(end, e->end);
    }
    if (timeline->n == 0) return sums;
    sums.seconds = end - begin;
    for (uint32_t p = 1; p < ST_MAX_PROCESSORS; p++)
        if (sums.busy[p] > sums.busy[sums.critical]) sums.critical = p;
    if (sums.seconds > 0.0) sums.bubble_rate = 1.0 - sums.busy[sums.critical] / sums.seconds;
    return sums;
}

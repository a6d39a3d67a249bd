// SPDX-License-Identifier: Apache-2.0
#include "sched/assign.h"

#include <math.h>
#include <string.h>

// Of the schedule's memory: `needs`; `rank`, when a node becomes ready; `ready[0]`.
struct assigning {
    const struct st_assignment *to;
    struct st_dag *dag;
    struct st_schedule *s;
    uint32_t n_ready;
    float free_at[ST_MAX_PROCESSORS];
};

static void make_ready(struct assigning *a, uint32_t node) {
    a->s->ready[0][a->n_ready++] = node;
}

// The node that became ready first; of several, the lowest.
static uint32_t take(struct assigning *a) {
    uint32_t *ready = a->s->ready[0], best = 0;
    const float *since = a->s->rank;
    for (uint32_t i = 1; i < a->n_ready; i++) {
        float now = since[ready[i]], least = since[ready[best]];
        if (now < least || (!(now > least) && ready[i] < ready[best])) best = i;
    }
    uint32_t node = ready[best];
    ready[best] = ready[--a->n_ready];
    return node;
}

static float seconds_on(const struct st_assignment *to, const struct st_node *node, uint32_t p) {
    float seconds = to->seconds[p][node->kind];
    return to->growth && st_subgraphs[node->kind].dynamic ? seconds * to->growth[node->chunk]
                                                          : seconds;
}

static void select_processor(const struct assigning *a, struct st_node *node, float ready) {
    const struct st_assignment *to = a->to;
    uint8_t can = to->can[node->layer * ST_N_SUBGRAPHS + node->kind];
    float least = INFINITY;
    for (uint32_t p = 0; p < to->n_processors; p++) {
        float seconds = seconds_on(to, node, p), end = fmaxf(ready, a->free_at[p]) + seconds;
        if (!(can >> p & 1) || end >= least) continue;
        least = end;
        node->processor = (uint8_t)p;
        node->seconds = seconds;
    }
}

static void place(struct assigning *a, uint32_t index) {
    struct st_node *node = &a->dag->nodes[index];
    float ready = a->s->rank[index];
    if (node->kind < ST_N_SUBGRAPHS) select_processor(a, node, ready);
    float end = fmaxf(ready, a->free_at[node->processor]) + node->seconds;
    a->free_at[node->processor] = end;
    for (uint32_t e = 0; e < node->n_edges; e++) {
        uint32_t next = a->dag->edges[node->first_edge + e];
        a->s->rank[next] = fmaxf(a->s->rank[next], end);
        if (--a->s->needs[next] == 0) make_ready(a, next);
    }
}

void st_assign(const struct st_assignment *assignment, struct st_dag *dag,
               struct st_schedule *schedule, uint8_t *processors) {
    struct assigning a = {.to = assignment, .dag = dag, .s = schedule};
    memset(schedule->rank, 0, dag->n * sizeof *schedule->rank);
    for (uint32_t i = 0; i < dag->n; i++) {
        schedule->needs[i] = dag->nodes[i].n_needs;
        if (schedule->needs[i] == 0) make_ready(&a, i);
    }
    while (a.n_ready > 0) place(&a, take(&a));
    dag->n_processors = assignment->n_processors;
    for (uint32_t i = 0; i < dag->n; i++) {
        const struct st_node *n = &dag->nodes[i];
        size_t row = (size_t)n->chunk * assignment->n_layers + n->layer;
        if (n->kind < ST_N_SUBGRAPHS) processors[row * ST_N_SUBGRAPHS + n->kind] = n->processor;
    }
}

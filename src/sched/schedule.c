// SPDX-License-Identifier: Apache-2.0
// `gain` is kept up to date as nodes end: when v waits for one node only, v's time is added to the
// gain of that node. So a policy's score is a look-up, and a decision is one pass over the ready
// nodes.
#include "sched/schedule.h"

#include <stdio.h>
#include <string.h>

void st_schedule_lay_out(struct st_schedule *s, uint32_t max_nodes, struct st_arena *arena) {
    s->needs = ST_TAKE(arena, uint32_t, max_nodes);
    s->needed = ST_TAKE(arena, uint32_t, max_nodes);
    s->gain = ST_TAKE(arena, float, 2 * (size_t)max_nodes);
    s->rank = ST_TAKE(arena, float, max_nodes);
    for (int p = 0; p < ST_MAX_PROCESSORS; p++) {
        s->ready[p] = ST_TAKE(arena, uint32_t, max_nodes);
        s->order[p] = ST_TAKE(arena, uint32_t, max_nodes);
    }
}

static void add_gain(struct st_schedule *s, uint32_t node) {
    const struct st_node *waits = &s->dag->nodes[node];
    bool npu = waits->processor != ST_PROCESSOR_CPU;
    s->gain[2 * s->needed[node] + !npu] += waits->seconds;
}

static void make_ready(struct st_schedule *s, uint32_t node) {
    uint32_t p = s->dag->nodes[node].processor;
    s->ready[p][s->n_ready[p]++] = node;
}

void st_schedule_begin(struct st_schedule *s, const struct st_dag *dag,
                       const struct st_policy *policy) {
    s->dag = dag;
    s->policy = policy;
    s->n_left = dag->n;
    memset(s->n_ready, 0, sizeof s->n_ready);
    memset(s->n_order, 0, sizeof s->n_order);
    memset(s->next, 0, sizeof s->next);
    memset(s->needed, 0, dag->n * sizeof *s->needed);
    memset(s->gain, 0, 2 * (size_t)dag->n * sizeof *s->gain);
    for (uint32_t i = 0; i < dag->n; i++) {
        const struct st_node *node = &dag->nodes[i];
        s->needs[i] = node->n_needs;
        s->order[node->processor][s->n_order[node->processor]++] = i;
        for (uint32_t e = 0; e < node->n_edges; e++)
            s->needed[dag->edges[node->first_edge + e]] ^= i;
    }
    for (uint32_t i = 0; i < dag->n; i++) {
        if (s->needs[i] == 0) make_ready(s, i);
        if (s->needs[i] == 1) add_gain(s, i);
    }
    if (policy->begin) policy->begin(s);
}

static uint32_t pick_next(struct st_schedule *s, uint32_t p) {
    if (s->next[p] == s->n_order[p]) return ST_NO_NODE;
    uint32_t node = s->order[p][s->next[p]];
    if (s->needs[node] > 0) return ST_NO_NODE;
    s->next[p]++;
    return node;
}

static uint32_t pick_best(struct st_schedule *s, uint32_t p) {
    uint32_t *ready = s->ready[p], best = 0;
    double best_score = 0.0;
    if (s->n_ready[p] == 0) return ST_NO_NODE;
    for (uint32_t i = 0; i < s->n_ready[p]; i++) {
        double score = s->policy->score(s, ready[i]);
        bool better = score > best_score || (score == best_score && ready[i] < ready[best]);
        if (i > 0 && !better) continue;
        best = i;
        best_score = score;
    }
    uint32_t node = ready[best];
    ready[best] = ready[--s->n_ready[p]];
    return node;
}

uint32_t st_schedule_pick(struct st_schedule *s, uint32_t processor) {
    return s->policy->score ? pick_best(s, processor) : pick_next(s, processor);
}

void st_schedule_done(struct st_schedule *s, uint32_t node) {
    const struct st_dag *dag = s->dag;
    const struct st_node *done = &dag->nodes[node];
    s->n_left--;
    for (uint32_t e = 0; e < done->n_edges; e++) {
        uint32_t next = dag->edges[done->first_edge + e];
        s->needed[next] ^= node;
        if (--s->needs[next] == 0)
            make_ready(s, next);
        else if (s->needs[next] == 1)
            add_gain(s, next);
    }
}

// ---- Policies

#define POLICY(name) &st_policy_##name,
const struct st_policy *const st_policies[] = {ST_POLICIES(POLICY) NULL};

const struct st_policy *st_policy_find(const char *name) {
    for (size_t i = 0; st_policies[i]; i++)
        if (strcmp(name, st_policies[i]->name) == 0) return st_policies[i];
    return NULL;
}

const char *stint_order_name(size_t i) {
    for (size_t k = 0; st_policies[k]; k++)
        if (k == i) return st_policies[k]->name;
    return NULL;
}

stint_status st_policy_select(const char *name, const struct st_policy **policy) {
    char known[200] = "";
    const struct st_policy *found = st_policy_find(name ? name : st_policy_ooo.name);
    for (size_t i = 0, n = 0; st_policies[i] && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "",
                              st_policies[i]->name);
    if (!found)
        return st_fail(STINT_E_ARG, "order '%.64s' is not known; known are: %s", name, known);
    *policy = found;
    return STINT_OK;
}

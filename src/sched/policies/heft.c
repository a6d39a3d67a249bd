// SPDX-License-Identifier: Apache-2.0
// The longest way to the end first (Topcuoglu et al. 2002).
#include "sched/schedule.h"

static void rank_upward(struct st_schedule *s) {
    const struct st_dag *dag = s->dag;
    for (uint32_t i = dag->n; i-- > 0;) {
        const struct st_node *node = &dag->nodes[i];
        float after = 0.0f;
        for (uint32_t e = 0; e < node->n_edges; e++) {
            float rank = s->rank[dag->edges[node->first_edge + e]];
            after = rank > after ? rank : after;
        }
        s->rank[i] = after + node->seconds;
    }
}

static double upward_rank(const struct st_schedule *s, uint32_t node) {
    return (double)s->rank[node];
}

const struct st_policy st_policy_heft = {.name = "heft",
                                         .about = "the longest way to the end goes first",
                                         .begin = rank_upward,
                                         .score = upward_rank};

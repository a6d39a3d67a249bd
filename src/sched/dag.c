// SPDX-License-Identifier: Apache-2.0
#include "sched/dag.h"

#include "base/size.h"

#include <string.h>

void st_dag_lay_out(struct st_dag *dag, uint32_t max_nodes, uint32_t max_edges,
                    struct st_arena *arena) {
    dag->max_nodes = max_nodes;
    dag->max_edges = max_edges;
    dag->nodes = ST_TAKE(arena, struct st_node, max_nodes);
    dag->edges = ST_TAKE(arena, uint32_t, max_edges);
    dag->from = ST_TAKE(arena, uint32_t, max_edges);
    dag->to = ST_TAKE(arena, uint32_t, max_edges);
}

void st_dag_begin(struct st_dag *dag, uint32_t n_processors) {
    dag->n = dag->n_edges = dag->n_added = 0;
    dag->n_processors = n_processors;
}

uint32_t st_dag_add(struct st_dag *dag, struct st_node node) {
    node.n_edges = node.n_needs = node.first_edge = 0;
    dag->nodes[dag->n] = node;
    return dag->n++;
}

void st_dag_need(struct st_dag *dag, uint32_t from, uint32_t to) {
    dag->from[dag->n_added] = from;
    dag->to[dag->n_added++] = to;
    dag->nodes[from].n_edges++;
    dag->nodes[to].n_needs++;
}

void st_dag_finish(struct st_dag *dag) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < dag->n; i++) {
        dag->nodes[i].first_edge = at;
        at += dag->nodes[i].n_edges;
        dag->nodes[i].n_edges = 0;
    }
    for (uint32_t e = 0; e < dag->n_added; e++) {
        struct st_node *from = &dag->nodes[dag->from[e]];
        dag->edges[from->first_edge + from->n_edges++] = dag->to[e];
    }
    dag->n_edges = dag->n_added;
}

double st_dag_longest_path(const struct st_dag *dag, double *scratch) {
    double longest = 0.0;
    for (uint32_t i = dag->n; i-- > 0;) {
        const struct st_node *node = &dag->nodes[i];
        double after = 0.0;
        for (uint32_t e = 0; e < node->n_edges; e++)
            after = st_max(after, scratch[dag->edges[node->first_edge + e]]);
        scratch[i] = after + (double)node->seconds;
        longest = st_max(longest, scratch[i]);
    }
    return longest;
}

double st_dag_busiest(const struct st_dag *dag, uint32_t *processor) {
    double busy[ST_MAX_PROCESSORS] = {0};
    uint32_t best = 0;
    for (uint32_t i = 0; i < dag->n; i++)
        busy[dag->nodes[i].processor] += (double)dag->nodes[i].seconds;
    for (uint32_t p = 1; p < dag->n_processors; p++)
        if (busy[p] > busy[best]) best = p;
    if (processor) *processor = best;
    return busy[best];
}

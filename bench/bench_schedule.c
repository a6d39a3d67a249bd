// SPDX-License-Identifier: Apache-2.0
// What a scheduling decision costs: prefills of three sizes in virtual time, so that nothing but
// the decisions takes time. Nanoseconds a decision, graph building apart.
#include "base/clock.h"
#include "sched/timeline.h"

#include <stdio.h>
#include <stdlib.h>

static const struct { uint32_t chunks, layers; } sizes[] = {{4, 24}, {16, 24}, {64, 32}};

struct bench {
    struct st_arena arena;
    struct st_dag dag;
    struct st_schedule schedule;
    struct st_timeline timeline;
};

static void lay_out(struct bench *b, const struct st_prefill_plan *plan, struct st_arena *arena) {
    st_dag_lay_out(&b->dag, st_prefill_nodes(plan), st_prefill_edges(plan), arena);
    st_schedule_lay_out(&b->schedule, st_prefill_nodes(plan), arena);
    st_timeline_lay_out(&b->timeline, st_prefill_nodes(plan), arena);
}

static void run(const struct st_prefill_plan *plan) {
    struct bench b = {.arena = st_arena_measure()};
    lay_out(&b, plan, &b.arena);
    if (st_arena_open(&b.arena, b.arena.used) != STINT_OK) exit(1);
    lay_out(&b, plan, &b.arena);
    uint64_t begun = st_now_ns();
    st_prefill_dag(plan, &b.dag);
    printf("%7u %7u %7u %8.1f", plan->n_chunks, plan->n_layers, b.dag.n,
           (double)(st_now_ns() - begun) / b.dag.n);
    for (size_t p = 0; st_policies[p]; p++) {
        double best = 1e9;
        for (int i = 0; i < 5; i++) {
            begun = st_now_ns();
            st_timeline_simulate(&b.schedule, &b.dag, st_policies[p], &b.timeline);
            double each = (double)(st_now_ns() - begun) / b.dag.n;
            best = each < best ? each : best;
        }
        printf(" %8.1f", best);
    }
    putchar('\n');
    st_arena_close(&b.arena);
}

int main(void) {
    printf("%7s %7s %7s %8s", "chunks", "layers", "nodes", "build");
    for (size_t p = 0; st_policies[p]; p++) printf(" %8s", st_policies[p]->name);
    printf("   ns a node\n");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t n = sizes[i].chunks;
        float *seconds = calloc((size_t)n * ST_NODE_KINDS, sizeof *seconds);
        uint8_t *shadowed = calloc(sizes[i].layers, ST_N_SUBGRAPHS);
        struct st_prefill_plan plan = {
            .n_layers = sizes[i].layers, .n_chunks = n, .seconds = seconds, .shadowed = shadowed};
        if (!seconds || !shadowed) return 1;
        for (uint32_t c = 0; c < n; c++)
            for (int kind = 0; kind < ST_NODE_KINDS; kind++)
                seconds[c * ST_NODE_KINDS + (uint32_t)kind] =
                    kind == ST_SUBGRAPH_ATTENTION ? 1.0f + (float)c : 2.0f + (float)kind;
        for (uint32_t l = 0; l < sizes[i].layers * ST_N_SUBGRAPHS; l++) {
            bool npu = st_subgraphs[l % ST_N_SUBGRAPHS].processor == ST_PROCESSOR_NPU;
            shadowed[l] = npu && l % ST_N_SUBGRAPHS != ST_SUBGRAPH_O ? ST_SHADOW_BESIDE
                                                                     : 0; // eight subgraphs a layer
        }
        for (int kind = 0; kind < ST_N_SUBGRAPHS; kind++)
            plan.processor[kind] = (uint8_t)st_subgraphs[kind].processor;
        run(&plan);
        free(seconds);
        free(shadowed);
    }
    return 0;
}

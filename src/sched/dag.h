// SPDX-License-Identifier: Apache-2.0
// The graph that is scheduled. A node runs on one processor for some time; an edge says that one
// node needs another's result. The nodes of a prefill are pairs of chunk and subgraph (llm.npu,
// section 3.4, eqs. 2 and 3).
#ifndef ST_SCHED_DAG_H
#define ST_SCHED_DAG_H

#include "base/arena.h"
#include "model/graph.h"
#include "model/weights_int8.h"

#include <stdint.h>

enum {
    ST_MAX_PROCESSORS = 3,               // those of model/graph.h
    ST_SUBGRAPH_SHADOW = ST_N_SUBGRAPHS, // the shadow of a subgraph's linear
    ST_NODE_KINDS
};

struct st_node {
    uint32_t chunk;
    uint16_t layer;
    uint8_t kind;                 // enum st_subgraph_kind, or ST_SUBGRAPH_SHADOW
    uint8_t role;                 // enum st_int8_role; for a shadow, that of its linear
    uint8_t processor;            // that runs it
    float seconds;                // profiled
    uint32_t first_edge, n_edges; // of `edges`: the nodes that need this one
    uint32_t n_needs;
};

// Every edge leads from a lower to a higher node.
struct st_dag {
    struct st_node *nodes; // [n]
    uint32_t *edges;       // [n_edges]
    uint32_t n, n_edges, n_processors;
    uint32_t max_nodes, max_edges; // capacities
    uint32_t *from, *to;           // [max_edges] in the order of addition
    uint32_t n_added;
};

// Reserves memory for a graph; runs twice on `arena` (base/arena.h).
void st_dag_lay_out(struct st_dag *dag, uint32_t max_nodes, uint32_t max_edges,
                    struct st_arena *arena);
// Removes all nodes and edges.
void st_dag_begin(struct st_dag *dag, uint32_t n_processors);
// Returns the node's number. pre: the graph is not full, and `to` is higher than `from`.
uint32_t st_dag_add(struct st_dag *dag, struct st_node node);
void st_dag_need(struct st_dag *dag, uint32_t from, uint32_t to);
// Sorts the edges by node.
void st_dag_finish(struct st_dag *dag);

// Lower bounds of the time of every execution order: the longest path, and the largest sum of the
// nodes of one processor.
double st_dag_longest_path(const struct st_dag *dag, double *scratch); // scratch: [n]
double st_dag_busiest(const struct st_dag *dag, uint32_t *processor);

// When a shadow runs: beside its subgraph; before it, as the subgraph needs the result; or after
// it, as it adds to the subgraph's result. A feed-forward block may have one before and one after,
// as it has two linears.
enum { ST_SHADOW_BESIDE = 1, ST_SHADOW_BEFORE = 2, ST_SHADOW_AFTER = 4 };

// The prefill of a prompt. Times are those of one subgraph of one chunk.
struct st_prefill_plan {
    uint32_t n_layers, n_chunks;
    uint32_t window; // chunks that have buffers at the same time; 0: all
    uint8_t processor[ST_NODE_KINDS];
    const uint8_t *processor_by_layer; // [n_layers, ST_NODE_KINDS], or NULL; used
                                       // instead of `processor`
    const float *seconds;              // [n_chunks, ST_NODE_KINDS]; or [n_layers, n_chunks, ...]
    bool seconds_by_layer;
    // ST_SHADOW_* of each subgraph, whose shadow takes the seconds of kind SHADOW; NULL: there are
    // no shadows.
    const uint8_t *shadowed; // [n_layers, ST_N_SUBGRAPHS]
    const uint8_t *ordered;  // [n_layers] 1: a chunk's attention needs that of the chunk before it
};

// Upper bounds of its nodes and edges.
uint32_t st_prefill_nodes(const struct st_prefill_plan *plan);
uint32_t st_prefill_edges(const struct st_prefill_plan *plan);
// Builds the graph chunk by chunk; the subgraphs of a chunk are in the order of a forward pass.
void st_prefill_dag(const struct st_prefill_plan *plan, struct st_dag *dag);

#endif

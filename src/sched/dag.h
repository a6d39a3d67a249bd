// SPDX-License-Identifier: Apache-2.0
// What is scheduled: nodes that each run on one processor for some time, and which of them need
// which others. A prefill is a graph of (chunk, subgraph) (llm.npu, section 3.4, eqs. 2 and 3).
#ifndef ST_SCHED_DAG_H
#define ST_SCHED_DAG_H

#include "base/arena.h"
#include "model/graph.h"
#include "model/weights_int8.h"

#include <stdint.h>

enum {
    ST_MAX_PROCESSORS = 3,               // those of model/graph.h, and one more
    ST_SUBGRAPH_SHADOW = ST_N_SUBGRAPHS, // of the linear of the subgraph it belongs to
    ST_NODE_KINDS
};

struct st_node {
    uint32_t chunk;
    uint16_t layer;
    uint8_t kind;                 // enum st_subgraph_kind, or ST_SUBGRAPH_SHADOW
    uint8_t role;                 // enum st_int8_role: of a shadow the linear it belongs to
    uint8_t processor;            // which one runs it
    float seconds;                // profiled
    uint32_t first_edge, n_edges; // of `edges`: the nodes that need this one
    uint32_t n_needs;
};

// Every edge leads from a lower to a higher node.
struct st_dag {
    struct st_node *nodes; // [n]
    uint32_t *edges;       // [n_edges]
    uint32_t n, n_edges, n_processors;
    uint32_t max_nodes, max_edges; // that there is room for
    uint32_t *from, *to;           // [max_edges] as they were added
    uint32_t n_added;
};

// Room for a graph; runs twice on `arena` (base/arena.h).
void st_dag_lay_out(struct st_dag *dag, uint32_t max_nodes, uint32_t max_edges,
                    struct st_arena *arena);
// Empties it.
void st_dag_begin(struct st_dag *dag, uint32_t n_processors);
// Returns the node's number. There must be room; `to` must be higher than `from`.
uint32_t st_dag_add(struct st_dag *dag, struct st_node node);
void st_dag_need(struct st_dag *dag, uint32_t from, uint32_t to);
// Sorts the edges by node.
void st_dag_finish(struct st_dag *dag);

// Longest path, and the largest sum of one processor: no schedule is shorter than either.
double st_dag_longest_path(const struct st_dag *dag, double *scratch); // scratch: [n]
double st_dag_busiest(const struct st_dag *dag, uint32_t *processor);

// Where a shadow stands: at the same time as its subgraph; before it, which needs the result; after
// it, on top of which it adds. The last two go together: of a feed-forward block's two linears.
enum { ST_SHADOW_BESIDE = 1, ST_SHADOW_BEFORE = 2, ST_SHADOW_AFTER = 4 };

// A prompt's prefill. Times are of one subgraph of one chunk.
struct st_prefill_plan {
    uint32_t n_layers, n_chunks;
    uint32_t window; // chunks that have buffers at a time; 0: all
    uint8_t processor[ST_NODE_KINDS];
    const uint8_t *processor_by_layer; // [n_layers, ST_NODE_KINDS] in its place; or NULL
    const float *seconds;              // [n_chunks, ST_NODE_KINDS]; or [n_layers, n_chunks, ...]
    bool seconds_by_layer;
    // ST_SHADOW_* of the subgraphs that have shadows, which take the seconds of kind SHADOW; NULL:
    // none.
    const uint8_t *shadowed; // [n_layers, ST_N_SUBGRAPHS]
};

// Nodes and edges that it has at most.
uint32_t st_prefill_nodes(const struct st_prefill_plan *plan);
uint32_t st_prefill_edges(const struct st_prefill_plan *plan);
// Builds it: chunk by chunk, each chunk's subgraphs in the order of a forward pass.
void st_prefill_dag(const struct st_prefill_plan *plan, struct st_dag *dag);

#endif

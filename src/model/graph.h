// SPDX-License-Identifier: Apache-2.0
// A layer as subgraphs: the units that are scheduled, in order (llm.npu, section 3.1 and figure 6).
#ifndef ST_MODEL_GRAPH_H
#define ST_MODEL_GRAPH_H

#include "base/status.h"

enum st_subgraph_kind {
    ST_SUBGRAPH_ATTN_NORM, // norm (and quantize)
    ST_SUBGRAPH_QKV,
    ST_SUBGRAPH_ATTENTION, // rotation, KV cache, attention
    ST_SUBGRAPH_O,         // output projection and residual sum
    ST_SUBGRAPH_FFN_NORM,  // norm (and quantize)
    ST_SUBGRAPH_FFN,       // feed-forward and residual sum
    ST_N_SUBGRAPHS
};

// SECOND: another device beside the NPU, in sessions with two.
enum st_processor { ST_PROCESSOR_CPU, ST_PROCESSOR_NPU, ST_PROCESSOR_SECOND };

struct st_subgraph {
    const char *name;
    enum st_processor processor; // which one it belongs on
    bool dynamic;                // depends on the chunk's position, not on its length alone
};

extern const struct st_subgraph st_subgraphs[ST_N_SUBGRAPHS];

// Whether a subgraph belongs on an NPU: a linear or a block of them, whatever the position.
static inline bool st_subgraph_is_static(enum st_subgraph_kind kind) {
    return st_subgraphs[kind].processor == ST_PROCESSOR_NPU;
}

// Static subgraphs of one layer: compiled once, shared by all chunks.
uint32_t st_graph_static_per_layer(void);

#endif

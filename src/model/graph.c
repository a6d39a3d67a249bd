// SPDX-License-Identifier: Apache-2.0
#include "model/graph.h"

const struct st_subgraph st_subgraphs[ST_N_SUBGRAPHS] = {
    [ST_SUBGRAPH_ATTN_NORM] = {"norm+quantize", ST_PROCESSOR_CPU, false},
    [ST_SUBGRAPH_QKV] = {"qkv", ST_PROCESSOR_NPU, false},
    [ST_SUBGRAPH_ATTENTION] = {"attention", ST_PROCESSOR_CPU, true},
    [ST_SUBGRAPH_O] = {"o", ST_PROCESSOR_NPU, false},
    [ST_SUBGRAPH_FFN_NORM] = {"norm+quantize", ST_PROCESSOR_CPU, false},
    [ST_SUBGRAPH_FFN] = {"ffn", ST_PROCESSOR_NPU, false},
};

uint32_t st_graph_static_per_layer(void) {
    uint32_t n = 0;
    for (int i = 0; i < ST_N_SUBGRAPHS; i++) n += !st_subgraphs[i].dynamic;
    return n;
}

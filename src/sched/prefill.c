// SPDX-License-Identifier: Apache-2.0
// Subgraph j of chunk i needs subgraph j - 1 of the same chunk; attention also needs j - 1 of all
// earlier chunks, and where a state passes from chunk to chunk the attention before it. A chunk
// that takes over another's buffers begins after that chunk has ended. What follows a linear needs
// the linear's shadow.
#include "sched/dag.h"

#include "base/size.h"

static uint8_t shadows_of(const struct st_prefill_plan *p, uint32_t layer, uint32_t kind) {
    return p->shadowed ? p->shadowed[layer * ST_N_SUBGRAPHS + kind] : 0;
}

static uint32_t shadows(const struct st_prefill_plan *p) {
    uint32_t n = 0;
    for (uint32_t i = 0; p->shadowed && i < p->n_layers * ST_N_SUBGRAPHS; i++)
        n += (uint32_t)__builtin_popcount(p->shadowed[i]);
    return n;
}

static uint32_t window_of(const struct st_prefill_plan *p) {
    return p->window ? st_min(p->window, p->n_chunks) : p->n_chunks;
}

uint32_t st_prefill_nodes(const struct st_prefill_plan *p) {
    return p->n_chunks * (p->n_layers * ST_N_SUBGRAPHS + shadows(p));
}

uint32_t st_prefill_edges(const struct st_prefill_plan *p) {
    uint32_t each = p->shadowed ? 2 : 1, in_chunk = p->n_layers * ST_N_SUBGRAPHS + shadows(p);
    return p->n_chunks * each * (in_chunk + p->n_layers * (window_of(p) + 1) + 1);
}

static float seconds_of(const struct st_prefill_plan *p, uint32_t layer, uint32_t chunk,
                        uint32_t kind) {
    size_t row = p->seconds_by_layer ? (size_t)layer * p->n_chunks + chunk : chunk;
    return p->seconds[row * ST_NODE_KINDS + kind];
}

static uint8_t processor_of(const struct st_prefill_plan *p, uint32_t layer, uint32_t kind) {
    return p->processor_by_layer ? p->processor_by_layer[layer * ST_NODE_KINDS + kind]
                                 : p->processor[kind];
}

static uint32_t add(const struct st_prefill_plan *p, struct st_dag *dag, uint32_t chunk,
                    uint32_t layer, uint32_t kind) {
    return st_dag_add(dag, (struct st_node){.chunk = chunk,
                                            .layer = (uint16_t)layer,
                                            .kind = (uint8_t)kind,
                                            .processor = processor_of(p, layer, kind),
                                            .seconds = seconds_of(p, layer, chunk, kind)});
}

// What a subgraph waits for in its own chunk: the subgraph before it, and the shadow of that one.
struct tail {
    uint32_t node, shadow;
    bool any, has_shadow;
};

static void need_tail(struct st_dag *dag, const struct tail *tail, uint32_t node) {
    if (tail->any) st_dag_need(dag, tail->node, node);
    if (tail->has_shadow) st_dag_need(dag, tail->shadow, node);
}

static uint32_t add_shadow(const struct st_prefill_plan *p, struct st_dag *dag, uint32_t chunk,
                           uint32_t layer, enum st_int8_role role, const struct tail *tail) {
    uint32_t node = add(p, dag, chunk, layer, ST_SUBGRAPH_SHADOW);
    dag->nodes[node].role = (uint8_t)role;
    need_tail(dag, tail, node);
    return node;
}

static enum st_int8_role last_linear(uint32_t kind) {
    return kind == ST_SUBGRAPH_QKV ? ST_INT8_QKV : kind == ST_SUBGRAPH_O ? ST_INT8_O : ST_INT8_DOWN;
}

// Adds one subgraph and its shadows. Returns the number of the subgraph's node.
static uint32_t add_subgraph(const struct st_prefill_plan *p, struct st_dag *dag, uint32_t chunk,
                             uint32_t layer, uint32_t kind, struct tail *tail) {
    uint8_t shadows = shadows_of(p, layer, kind);
    if (shadows & ST_SHADOW_BEFORE)
        *tail =
            (struct tail){.node = add_shadow(p, dag, chunk, layer, ST_INT8_UP, tail), .any = true};
    uint32_t node = add(p, dag, chunk, layer, kind);
    struct tail next = {.node = node, .any = true};
    need_tail(dag, tail, node);
    if (shadows & ST_SHADOW_BESIDE) {
        next.shadow = add_shadow(p, dag, chunk, layer, last_linear(kind), tail);
        next.has_shadow = true;
    }
    if (shadows & ST_SHADOW_AFTER)
        next.node = add_shadow(p, dag, chunk, layer, last_linear(kind), &next);
    *tail = next;
    return node;
}

static void add_layer(const struct st_prefill_plan *p, struct st_dag *dag, uint32_t chunk,
                      uint32_t layer, uint32_t nodes_per_chunk, struct tail *tail) {
    uint32_t window = window_of(p), qkv = 0;
    for (uint32_t kind = 0; kind < ST_N_SUBGRAPHS; kind++) {
        uint32_t node = add_subgraph(p, dag, chunk, layer, kind, tail);
        if (kind == ST_SUBGRAPH_QKV) qkv = node;
        bool ordered = kind == ST_SUBGRAPH_ATTENTION && p->ordered && p->ordered[layer];
        if (ordered && chunk > 0) st_dag_need(dag, node - nodes_per_chunk, node);
        // Chunks that have left the window are done.
        for (uint32_t i = chunk + 1 > window ? chunk + 1 - window : 0;
             kind == ST_SUBGRAPH_ATTENTION && i < chunk; i++) {
            uint32_t before = qkv - (chunk - i) * nodes_per_chunk;
            st_dag_need(dag, before, node);
            if (shadows_of(p, layer, ST_SUBGRAPH_QKV)) st_dag_need(dag, before + 1, node);
        }
    }
}

void st_prefill_dag(const struct st_prefill_plan *p, struct st_dag *dag) {
    uint32_t nodes_per_chunk = p->n_layers * ST_N_SUBGRAPHS + shadows(p), window = window_of(p);
    uint32_t n_processors = 2;
    for (uint32_t i = 0; i < p->n_layers * ST_NODE_KINDS; i++)
        n_processors =
            st_max(n_processors, processor_of(p, i / ST_NODE_KINDS, i % ST_NODE_KINDS) + 1u);
    st_dag_begin(dag, n_processors);
    for (uint32_t chunk = 0; chunk < p->n_chunks; chunk++) {
        uint32_t first = dag->n;
        struct tail tail = {0};
        for (uint32_t layer = 0; layer < p->n_layers; layer++)
            add_layer(p, dag, chunk, layer, nodes_per_chunk, &tail);
        if (chunk < window) continue;
        uint32_t last = first - (window - 1) * nodes_per_chunk - 1;
        st_dag_need(dag, last, first);
        if (shadows_of(p, p->n_layers - 1, ST_SUBGRAPH_FFN)) st_dag_need(dag, last - 1, first);
    }
    st_dag_finish(dag);
}

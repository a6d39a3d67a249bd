// SPDX-License-Identifier: Apache-2.0
// What a session opens for hybrid steps: the device's memory, its weights and graphs.
#include "session/weights/hybrid.h"

#include "base/size.h"
#include "session/weights/bounded.h"

#include <string.h>

// ---- Segments

// Clusters that are hot for one row, those that are for two as well, and so on.
static void cut(const struct st_neurons *n, uint32_t layer, struct st_hybrid_segment *segments) {
    uint32_t first = 0;
    for (size_t b = 0; b < ST_HYBRID_SEGMENTS; b++) {
        uint32_t end = (uint32_t)st_max(first, st_neurons_dense(n, layer, (size_t)1 << b));
        struct st_hybrid_segment *s = &segments[b];
        size_t place;
        *s = (struct st_hybrid_segment){.clusters = {first, end}};
        s->n = st_dense_neurons(n, s->clusters, &place);
        s->order = n->model->neurons.layers[layer].order + place;
        const struct st_linear_op *up = &n->model->int8.layers[layer].ffn->up;
        s->packed_rows = (uint32_t)st_linear_op_packed_rows(up->epilogue, 1, &s->n);
        first = end;
    }
}

// ---- Memory

// Of the widest layer.
static size_t widest(const struct st_bounded *r, size_t segment) {
    const struct st_neurons *n = &r->neurons;
    struct st_hybrid_segment segments[ST_HYBRID_SEGMENTS];
    size_t most = 1;
    for (uint32_t i = 0; i < n->model->config.n_layers; i++) {
        cut(n, i, segments);
        most = st_max(most, segments[segment].n);
    }
    return most;
}

static void lay_out(const struct st_bounded *r, struct st_hybrid *h, struct st_arena *a) {
    const struct st_config *c = &r->neurons.model->config;
    size_t tokens = ST_NEURON_TOKENS, all = 1;
    h->segments = st_arena_take(a, c->n_layers, sizeof *h->segments);
    h->x = ST_TAKE(a, float, tokens * c->hidden);
    h->quantized = ST_TAKE(a, uint8_t, st_quantized_bytes(tokens, c->hidden, true));
    h->in_capacity = tokens * c->hidden;
    h->in = (struct st_outliers *)ST_TAKE(a, uint8_t, st_outliers_bytes(h->in_capacity));
    h->add_row = ST_TAKE(a, int32_t, tokens);
    for (size_t b = 0; b < ST_HYBRID_SEGMENTS; b++) all = st_max(all, widest(r, b));
    h->capacity = tokens * all;
    for (size_t b = 0; b < ST_HYBRID_SEGMENTS; b++) {
        h->middle[b] = ST_TAKE(a, uint8_t, st_quantized_bytes(tokens, all, true));
        h->sums[b] = ST_TAKE(a, int32_t, ST_SPARSE_ROWS * (size_t)c->hidden);
        h->lists[b] = (struct st_outliers *)ST_TAKE(a, uint8_t, st_outliers_bytes(h->capacity));
        h->add[b] = ST_TAKE(a, float, tokens * 2 * st_round_up(all, ST_DEVICE_GROUP));
    }
}

static stint_status open_memory(struct st_bounded *r, struct st_hybrid *h) {
    struct st_arena measure = st_arena_measure();
    lay_out(r, h, &measure);
    ST_TRY(st_arena_check(&measure, "hybrid steps"));
    ST_TRY(st_arena_open(&h->arena, measure.used));
    lay_out(r, h, &h->arena);
    return st_mirror_open(h->device, h->arena.base, h->arena.used, &h->mirror);
}

// ---- Graphs

static void drop(struct st_hybrid_segment *s) {
    st_device_free_graph(s->graph);
    for (int i = 0; i < 2; i++) st_device_free_weights(s->weights[i]);
    s->graph = NULL;
    s->weights[0] = s->weights[1] = NULL;
    s->n = 0;
}

static stint_status compile(struct st_hybrid *h, const struct st_dense *dense,
                            struct st_hybrid_segment *s) {
    struct st_device_subgraph subgraph = {
        .linear_ops = {dense->up, dense->down}, .n_linear_ops = 2, .two_term = {true, true}};
    for (uint32_t i = 0; i < subgraph.n_linear_ops; i++)
        ST_TRY(st_device_import_weights(h->device, &subgraph.linear_ops[i].weight, false,
                                        &s->weights[i]));
    return st_device_compile(h->device, &subgraph, s->weights, ST_NEURON_TOKENS, &s->graph);
}

// One that the device has no room for is the host's.
static stint_status open_segment(struct st_bounded *r, uint32_t layer,
                                 struct st_hybrid_segment *s) {
    struct st_dense dense = {0};
    if (s->n == 0) return STINT_OK;
    ST_TRY(st_dense_read(&r->neurons, r->loader, layer, s->clusters, &dense));
    stint_status status = compile(&r->hybrid, &dense, s);
    st_dense_close(&dense);
    if (status == STINT_OK) return STINT_OK;
    drop(s);
    return status == STINT_E_LIMIT || status == STINT_E_NOMEM ? STINT_OK : status;
}

static stint_status open_in(struct st_bounded *r, struct st_hybrid *h) {
    ST_TRY(open_memory(r, h));
    for (uint32_t i = 0; i < r->neurons.model->config.n_layers; i++) {
        cut(&r->neurons, i, h->segments[i]);
        for (size_t b = 0; b < ST_HYBRID_SEGMENTS; b++)
            ST_TRY(open_segment(r, i, &h->segments[i][b]));
    }
    return STINT_OK;
}

stint_status st_hybrid_open(struct st_bounded *r, struct st_device *device) {
    const struct st_device_caps *caps = st_device_caps(device);
    if (!r->sparse || !caps->own_processor || !caps->sums) return STINT_OK;
    r->hybrid.device = device;
    return open_in(r, &r->hybrid);
}

void st_hybrid_close(struct st_bounded *r) {
    struct st_hybrid *h = &r->hybrid;
    for (uint32_t i = 0; h->segments && i < r->neurons.model->config.n_layers; i++)
        for (size_t b = 0; b < ST_HYBRID_SEGMENTS; b++) drop(&h->segments[i][b]);
    st_mirror_close(&h->mirror);
    st_arena_close(&h->arena);
    *h = (struct st_hybrid){0};
}

// SPDX-License-Identifier: Apache-2.0
// The weights and the graph of a segment of hot clusters on a second processor.
#include "session/weights/hybrid.h"

#include "session/weights/bounded.h"

void st_hybrid_drop(struct st_hybrid_segment *s) {
    st_device_free_graph(s->graph);
    for (int i = 0; i < 2; i++) st_device_free_weights(s->weights[i]);
    s->graph = NULL;
    s->weights[0] = s->weights[1] = NULL;
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

stint_status st_hybrid_open_segment(struct st_bounded *r, uint32_t layer,
                                    struct st_hybrid_segment *s) {
    const struct st_linear_op *up = &r->neurons.model->int8.layers[layer].ffn->up;
    struct st_dense dense = {0};
    size_t first;
    s->n = st_dense_neurons(&r->neurons, s->clusters, &first);
    s->order = r->neurons.model->neurons.layers[layer].order + first;
    s->packed_rows = (uint32_t)st_linear_op_packed_rows(up->epilogue, 1, &s->n);
    if (s->n == 0) return STINT_OK;
    ST_TRY(st_dense_read(&r->neurons, r->loader, layer, s->clusters, &dense));
    stint_status status = compile(&r->hybrid, &dense, s);
    st_dense_close(&dense);
    if (status == STINT_OK) return STINT_OK;
    st_hybrid_drop(s);
    return status == STINT_E_LIMIT || status == STINT_E_NOMEM ? STINT_OK : status;
}

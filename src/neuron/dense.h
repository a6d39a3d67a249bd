// SPDX-License-Identifier: Apache-2.0
// Hot clusters of a layer as two dense linears, for a device that runs them while the host computes
// the other neurons (PowerInfer-2, section 4.1). The second gives exact sums, which are added to
// the host's, so what neurons give does not depend on who computes them.
#ifndef ST_NEURON_DENSE_H
#define ST_NEURON_DENSE_H

#include "neuron/neurons.h"

struct st_dense {
    struct st_linear_op up, down; // in the order of places from the first cluster on
    uint32_t n;                   // neurons
    const int32_t *order;         // [n] the neuron of each
    struct st_arena memory;       // of the weights
};

// Neurons of some clusters: [*first, the first + n) of a layer's places.
uint32_t st_dense_neurons(const struct st_neurons *neurons, struct st_clusters clusters,
                          size_t *first);
// Reads clusters from the package and packs them. STINT_E_IO, E_FORMAT (a damaged entry), E_NOMEM.
// pre: `clusters` is not empty
stint_status st_dense_read(const struct st_neurons *neurons, struct st_loader *loader,
                           uint32_t layer, struct st_clusters clusters, struct st_dense *dense);
void st_dense_close(struct st_dense *dense); // accepts a zeroed one

#endif

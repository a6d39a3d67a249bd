// SPDX-License-Identifier: Apache-2.0
// How many hot clusters a second processor gets: as many as it computes in the time in which the
// host computes the other neurons of the block (PowerInfer-2, section 5).
#include "base/size.h"
#include "session/weights/hybrid.h"

uint32_t st_hybrid_clusters(const struct st_hybrid_rates *rates, double neurons, uint32_t dense,
                            uint32_t cluster_neurons) {
    double all = rates->host_neuron + rates->device_neuron;
    if (!(all > 0.0)) return 0;
    double n = (rates->host_neuron * neurons - rates->device_block) / all;
    return n > 0.0 ? (uint32_t)st_min(dense, (size_t)(n / cluster_neurons)) : 0;
}

uint32_t st_hybrid_share(const struct st_neurons *n, const struct st_hybrid_rates *rates,
                         float share, uint32_t layer, size_t b) {
    uint32_t dense = st_neurons_dense(n, layer, (size_t)1 << b);
    if (share > 0.0f) return (uint32_t)(share * (float)dense + 0.5f);
    return st_hybrid_clusters(rates, st_neurons_expected(n, layer, (size_t)1 << b), dense,
                              n->plan.cluster_entries * n->model->neurons.layout.per_entry);
}

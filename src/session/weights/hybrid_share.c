// SPDX-License-Identifier: Apache-2.0
// How many clusters a second processor gets: as many as it computes in the time in which the host
// computes the other neurons of the block (PowerInfer-2, section 5). It computes clusters whole, so
// that it takes on more neurons than the host is rid of: the most active ones come first.
#include "base/size.h"
#include "session/weights/hybrid.h"

#include <math.h>
#include <stdlib.h>

uint32_t st_hybrid_clusters(const struct st_hybrid_rates *rates, const float *named, uint32_t n,
                            uint32_t cluster_neurons) {
    double host = 0.0, device = rates->device_block, best;
    uint32_t n_best = 0;
    for (uint32_t i = 0; i < n; i++) host += rates->host_neuron * (double)named[i];
    best = host;
    for (uint32_t i = 0; i < n && device < best; i++) {
        host -= rates->host_neuron * (double)named[i];
        device += rates->device_neuron * cluster_neurons;
        double longer = fmax(host, device);
        if (longer >= best) continue;
        best = longer;
        n_best = i + 1;
    }
    return n_best;
}

static uint32_t given_share(float share, uint32_t hot, uint32_t all) {
    float others = share > 1.0f ? share - 1.0f : 0.0f;
    return (uint32_t)((share - others) * (float)hot + 0.5f) +
           (uint32_t)(fminf(others, 1.0f) * (float)(all - hot) + 0.5f);
}

// Of a layer, for batches of 1 << b rows. named: room for all of its clusters.
static uint32_t share_of(const struct st_neurons *n, const struct st_hybrid_rates *rates,
                         float share, bool hot_only, uint32_t layer, size_t b, float *named) {
    size_t tokens = (size_t)1 << b;
    uint32_t hot = st_neurons_dense(n, layer, tokens);
    uint32_t all = hot_only ? hot : n->plan.n_clusters;
    if (share > 0.0f) return given_share(share, hot, all);
    for (uint32_t i = 0; i < n->plan.n_clusters; i++)
        named[i] = (float)st_neurons_expected(n, layer, (struct st_clusters){i, i + 1}, tokens);
    return (uint32_t)st_min(
        all, st_hybrid_clusters(rates, named, n->plan.n_clusters,
                                n->plan.cluster_entries * n->model->neurons.layout.per_entry));
}

stint_status st_hybrid_assign(struct st_neurons *n, const struct st_hybrid_rates *rates,
                              float share, bool hot_only) {
    uint32_t layers = n->model->config.n_layers;
    float *named = malloc(n->plan.n_clusters * sizeof *named);
    if (!named) return st_fail(STINT_E_NOMEM, "no memory to plan hybrid steps");
    for (size_t at = 0; at < ST_NEURON_RATES; at++) {
        size_t b = st_min(at, ST_HYBRID_BATCHES - 1);
        for (uint32_t i = 0; i < layers; i++)
            n->elsewhere[at * layers + i] = share_of(n, &rates[b], share, hot_only, i, b, named);
    }
    free(named);
    return STINT_OK;
}

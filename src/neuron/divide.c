// SPDX-License-Identifier: Apache-2.0
// Which neurons run dense, and which of the others stay in memory (PowerInfer-2, section 5).
#include "base/size.h"
#include "neuron/neurons.h"

#include <math.h>

enum { CLUSTER_BYTES = 256 << 10, PREDICTED_PER_ACTIVE = 3 };
// A neuron that is active so often costs less when it runs without a prediction.
static const float hot_rate = 0.6f;

static const struct st_neuron_layout *layout_of(const struct st_neurons *n) {
    return &n->model->neurons.layout;
}

void st_neurons_plan(const struct stint_model *model, struct st_neurons_plan *plan) {
    const struct st_neuron_layout *l = &model->neurons.layout;
    uint32_t entries = (uint32_t)st_max(1, CLUSTER_BYTES / l->entry_bytes);
    entries = (uint32_t)st_min(entries, st_max(1, l->n_entries / 16));
    *plan = (struct st_neurons_plan){.cluster_entries = entries,
                                     .n_clusters = (uint32_t)st_ceil_div(l->n_entries, entries),
                                     .entry_bytes = l->entry_bytes,
                                     .cluster_bytes = entries * l->entry_bytes};
}

size_t st_neurons_batch(size_t n_tokens) {
    size_t i = 0;
    while (i + 1 < ST_NEURON_RATES && ((size_t)1 << i) < n_tokens) i++;
    return i;
}

// How often a cluster's neurons are active, on average.
static float cluster_rate(const struct stint_model *m, const struct st_neurons_plan *plan,
                          uint32_t layer, uint32_t cluster, size_t index) {
    const struct st_neuron_layout *l = &m->neurons.layout;
    const float *rates = m->neurons.layers[layer].rates + index * l->n;
    size_t step = (size_t)plan->cluster_entries * l->per_entry, first = cluster * step;
    size_t end = st_min(l->n, first + step);
    double sum = 0.0;
    for (size_t i = first; i < end; i++) sum += (double)rates[i];
    return end > first ? (float)(sum / (double)(end - first)) : 0.0f;
}

// Of a layer: the clusters from the first on that are above `min`.
static uint32_t leading_clusters(const struct stint_model *m, const struct st_neurons_plan *plan,
                                 uint32_t layer, size_t index, float min) {
    uint32_t n = 0;
    while (n < plan->n_clusters && cluster_rate(m, plan, layer, n, index) > min) n++;
    return n;
}

uint32_t st_neurons_hot_clusters(const struct stint_model *m, const struct st_neurons_plan *plan,
                                 size_t n_tokens) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->config.n_layers; i++)
        n += leading_clusters(m, plan, i, st_neurons_batch(n_tokens), hot_rate);
    return n;
}

// How many leading pieces of a layer are active more often than `rate`.
typedef uint32_t count_fn(const struct st_neurons *n, uint32_t layer, size_t index, float rate);

static uint32_t count_clusters(const struct st_neurons *n, uint32_t layer, size_t index,
                               float rate) {
    return leading_clusters(n->model, &n->plan, layer, index, rate);
}

uint32_t st_neurons_dense(const struct st_neurons *n, uint32_t layer, size_t n_tokens) {
    return n->hot_clusters[st_neurons_batch(n_tokens) * n->model->config.n_layers + layer];
}

uint32_t st_neurons_elsewhere(const struct st_neurons *n, uint32_t layer, size_t n_tokens) {
    return n->elsewhere[st_neurons_batch(n_tokens) * n->model->config.n_layers + layer];
}

uint32_t st_neurons_resident_clusters(const struct st_neurons *n, uint32_t layer) {
    return st_neurons_dense(n, layer, ST_NEURON_TOKENS);
}

uint32_t st_neurons_first_cold(const struct st_neurons *n, uint32_t layer) {
    uint64_t clusters = st_max(st_neurons_resident_clusters(n, layer), n->elsewhere[layer]);
    return (uint32_t)st_min(layout_of(n)->n_entries, clusters * n->plan.cluster_entries);
}

static uint32_t count_entries(const struct st_neurons *n, uint32_t layer, size_t index,
                              float rate) {
    const struct st_neuron_layout *l = layout_of(n);
    const float *rates = n->model->neurons.layers[layer].rates + index * l->n;
    uint32_t first = st_neurons_first_cold(n, layer), e = first;
    while (e < l->n_entries && rates[(size_t)e * l->per_entry] > rate) e++;
    return e - first;
}

// The lowest rate, from `low` on, above which there are no more pieces than there is room for.
static float rate_bound(const struct st_neurons *n, count_fn *count, size_t index, float low,
                        uint64_t room) {
    float high = 1.0f;
    for (int step = 0; step < 20; step++) {
        float middle = step ? (low + high) / 2 : low;
        uint64_t pieces = 0;
        for (uint32_t i = 0; i < n->model->config.n_layers; i++)
            pieces += count(n, i, index, middle);
        if (pieces <= room)
            high = middle;
        else
            low = middle;
        if (high == low) break;
    }
    return high;
}

// How often an entry is wanted, about: a predictor names a few times more than are active.
static double wanted_rate(const struct st_neurons *n, uint32_t layer, uint32_t entry) {
    const struct st_neuron_layout *l = layout_of(n);
    const struct st_layer_neurons *neurons = &n->model->neurons.layers[layer];
    double rate = (double)neurons->rates[(size_t)entry * l->per_entry];
    if (n->plan.no_predictors || !neurons->predicted) return 1.0;
    return fmin(1.0, PREDICTED_PER_ACTIVE * rate * l->per_entry);
}

double st_neurons_expected(const struct st_neurons *n, uint32_t layer, struct st_clusters clusters,
                           size_t n_tokens) {
    const struct st_neuron_layout *l = layout_of(n);
    const struct st_layer_neurons *neurons = &n->model->neurons.layers[layer];
    const float *rates = neurons->rates + st_neurons_batch(n_tokens) * l->n;
    size_t step = (size_t)n->plan.cluster_entries * l->per_entry;
    size_t dense = step * st_neurons_dense(n, layer, n_tokens);
    bool all = n->plan.no_predictors || !neurons->predicted;
    double sum = 0.0;
    for (size_t i = clusters.first * step; i < st_min(l->n, clusters.end * step); i++)
        sum += all || i < dense ? 1.0 : fmin(1.0, PREDICTED_PER_ACTIVE * (double)rates[i]);
    return sum;
}

// Entries from one on that a token takes of a layer.
static double wanted_from(const struct st_neurons *n, uint32_t layer, uint32_t first) {
    double sum = 0.0;
    for (uint32_t e = first; e < layout_of(n)->n_entries; e++) sum += wanted_rate(n, layer, e);
    return sum;
}

// The most entries that a layer takes, while it runs, beside those that stay.
static uint32_t passing_entries(const struct st_neurons *n) {
    double max = 0.0;
    for (uint32_t i = 0; i < n->model->config.n_layers; i++)
        max = fmax(max, wanted_from(n, i, n->kept[i]));
    return (uint32_t)max;
}

uint64_t st_neurons_passing(const struct stint_model *m, const struct st_neurons_plan *plan) {
    const struct st_neurons n = {.model = m, .plan = *plan};
    double max = 0.0;
    for (uint32_t i = 0; i < m->config.n_layers; i++) max = fmax(max, wanted_from(&n, i, 0));
    return (uint64_t)ceil(max);
}

static void keep(struct st_neurons *n, uint32_t room) {
    float bound = rate_bound(n, count_entries, 0, -1.0f, room);
    for (uint32_t i = 0; i < n->model->config.n_layers; i++)
        n->kept[i] = st_neurons_first_cold(n, i) + count_entries(n, i, 0, bound);
}

void st_neurons_divide(struct st_neurons *n) {
    uint32_t layers = n->model->config.n_layers;
    for (size_t b = 0; b < ST_NEURON_RATES; b++) {
        float bound = rate_bound(n, count_clusters, b, hot_rate, n->plan.n_hot);
        for (uint32_t i = 0; i < layers; i++)
            n->hot_clusters[b * layers + i] = count_clusters(n, i, b, bound);
    }
    st_neurons_keep(n);
}

void st_neurons_keep(struct st_neurons *n) {
    keep(n, n->plan.n_cold);
    for (int step = 0; step < 4; step++)
        keep(n, n->plan.n_cold - (uint32_t)st_min(n->plan.n_cold, passing_entries(n)));
}

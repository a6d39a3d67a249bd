// SPDX-License-Identifier: Apache-2.0
// The neurons of a sparse model in memory (PowerInfer-2, section 4). Hot neurons are in clusters
// that run dense. Cold neurons are single; only the predicted ones run. Neurons that are not in
// memory are read while those in memory are computed.
#ifndef ST_NEURON_NEURONS_H
#define ST_NEURON_NEURONS_H

#include "base/size.h"
#include "model/model.h"
#include "neuron/cache.h"
#include "neuron/sparse.h"

struct st_neurons_plan {
    uint32_t cluster_entries, n_clusters; // entries of a hot cluster; clusters of a layer
    size_t entry_bytes, cluster_bytes;
    uint32_t n_hot, n_cold; // clusters and entries that fit; set by the planner
    bool no_predictors;     // predictors are left out; set by the planner
};

struct st_neurons {
    const struct stint_model *model;
    const char *path;
    struct st_neurons_plan plan;
    struct st_arena arena;
    struct st_cache hot, cold;
    uint32_t *hot_clusters; // [ST_NEURON_RATES, n_layers] of each layer, by size of the batch
    uint32_t *elsewhere;    // the same: clusters, from the first on, that the host does not compute
    uint32_t *kept;         // [n_layers] cold entries up to here stay, the others make room first
    struct st_linear_op (*predictors)[2]; // [n_layers] with weights in memory
    struct st_neuron_ref *refs;           // [neurons of a layer]
    int32_t *ready, *pending;             // [entries of a layer] of a round
    uint8_t *wanted;                      // [entries of a layer]
    int32_t *expected;                    // [entries of a layer] taken before their turn
    size_t n_expected;
    uint64_t computed, possible; // neurons; of dense blocks
};

// Clusters [first, end) of a layer, hot ones and those behind them.
struct st_clusters {
    uint32_t first, end;
};

// The size of hot clusters.
void st_neurons_plan(const struct stint_model *model, struct st_neurons_plan *plan);
// Bytes of predictors and tables, which do not depend on n_hot and n_cold.
uint64_t st_neurons_fixed_bytes(const struct stint_model *model,
                                const struct st_neurons_plan *plan);
// The number of clusters worth running dense for batches of n_tokens, if memory were unlimited.
uint32_t st_neurons_hot_clusters(const struct stint_model *model,
                                 const struct st_neurons_plan *plan, size_t n_tokens);

// The most entries that a step of one row takes of a layer, on average, if none are in hot
// clusters.
uint64_t st_neurons_passing(const struct stint_model *model, const struct st_neurons_plan *plan);

// Entries of all layers that are in no hot cluster if n_hot of them stay, at most: more room for
// single neurons is of no use. A layer's last cluster may be smaller.
static inline uint64_t st_neurons_single(const struct stint_model *model,
                                         const struct st_neurons_plan *plan) {
    uint64_t n = model->neurons.layout.n_entries, layers = model->config.n_layers;
    uint64_t hot = (uint64_t)plan->n_hot * plan->cluster_entries;
    uint64_t missing = layers * ((uint64_t)plan->n_clusters * plan->cluster_entries - n);
    return layers * n - st_min(layers * n, hot - st_min(hot, missing));
}

// Decides which clusters are hot for each batch size and which cold entries are evicted last: fills
// hot_clusters and kept. `neurons` is zeroed except for model and plan.
void st_neurons_divide(struct st_neurons *neurons);
// Only `kept` anew, after a change of `elsewhere`.
void st_neurons_keep(struct st_neurons *neurons);
// The place of a batch's size in hot_clusters and `elsewhere`.
size_t st_neurons_batch(size_t n_tokens);
// Clusters of a layer that stay in memory: the hot ones of the largest sparse batch.
uint32_t st_neurons_resident_clusters(const struct st_neurons *neurons, uint32_t layer);

// Entries of a layer from this one on may be in the cold region: those before it stay in hot
// clusters, or another processor has them.
uint32_t st_neurons_first_cold(const struct st_neurons *neurons, uint32_t layer);

// Clusters of a layer, from the first on, that another processor computes in a batch of n_tokens.
uint32_t st_neurons_elsewhere(const struct st_neurons *neurons, uint32_t layer, size_t n_tokens);

// Clusters of a layer that run dense in a batch of n_tokens, from the first on.
uint32_t st_neurons_dense(const struct st_neurons *neurons, uint32_t layer, size_t n_tokens);

// Neurons of some clusters that such a batch computes, on average: of the dense ones all, of the
// others those that are predicted.
double st_neurons_expected(const struct st_neurons *neurons, uint32_t layer,
                           struct st_clusters clusters, size_t n_tokens);

// Reads the predictors. Borrows model and loader until close. STINT_E_IO, E_FORMAT, E_NOMEM.
stint_status st_neurons_open(const struct stint_model *model, const struct st_neurons_plan *plan,
                             struct st_loader *loader, struct st_neurons *neurons);
void st_neurons_close(struct st_neurons *neurons); // accepts a zeroed one
// Reads ahead, the most active ones first, the cold entries that stay: one behind the other as they
// lie in the file, which is faster than one by one as steps ask for them. Forgets those that are
// there, and stops after `seconds`. pre: no step has run
void st_neurons_fill(struct st_neurons *neurons, double seconds);

// Whether the scores of any token name the neuron of a place: whether one is above `min`.
static inline bool st_neurons_names(const float *scores, size_t n_tokens, size_t neurons,
                                    size_t place, float min) {
    bool named = false;
    for (size_t t = 0; t < n_tokens; t++) named |= scores[t * neurons + place] > min;
    return named;
}

// Adds neurons of a layer to the block that has begun: the hot ones, and those that scores
// [n_tokens, neurons] predict; NULL: all. Scores are ordered by place. Computes while it reads,
// unless `pipelined` is false. STINT_E_IO, E_FORMAT (a damaged entry).
stint_status st_neurons_run(struct st_neurons *neurons, uint32_t layer, struct st_clusters part,
                            const float *scores, struct st_sparse *sparse, struct st_pool *pool,
                            bool pipelined);
// Takes hot clusters of a layer, in order, as many as find room: [part.first, *end), and lists all
// their neurons, which stay until st_neurons_run() has run of the layer. STINT_E_IO, E_FORMAT.
stint_status st_neurons_list(struct st_neurons *neurons, uint32_t layer, struct st_clusters part,
                             struct st_neuron_ref *refs, size_t *n_refs, uint32_t *end);
// After a layer's last tokens: lets go of what was expected and not wanted after all.
void st_neurons_end(struct st_neurons *neurons);
// Begins to read what these scores name of a layer that will run soon; adds to what is expected of
// it already. They may be wrong: what is not used in the end was read for nothing.
void st_neurons_expect(struct st_neurons *neurons, uint32_t layer, const float *scores,
                       size_t n_tokens);
// False if all neurons fit: then st_neurons_expect() is not needed.
bool st_neurons_may_miss(const struct st_neurons *neurons);
// After a failure.
void st_neurons_reset(struct st_neurons *neurons);

#endif

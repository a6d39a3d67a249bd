// SPDX-License-Identifier: Apache-2.0
// The neurons of a sparse model in memory (PowerInfer-2, section 4): clusters of hot ones, which
// run whole, and single cold ones, which run where a predictor names them. What is not there is
// read while what is there is computed.
#ifndef ST_NEURON_NEURONS_H
#define ST_NEURON_NEURONS_H

#include "model/model.h"
#include "neuron/cache.h"
#include "neuron/sparse.h"

struct st_neurons_plan {
    uint32_t cluster_entries, n_clusters; // entries of a hot cluster; clusters of a layer
    size_t entry_bytes, cluster_bytes;
    uint32_t n_hot, n_cold; // clusters and entries that fit; set by who plans
    bool no_predictors;     // predictors are left out; by who plans
};

struct st_neurons {
    const struct stint_model *model;
    const char *path;
    struct st_neurons_plan plan;
    struct st_arena arena;
    struct st_cache hot, cold;
    uint32_t *hot_clusters; // [ST_NEURON_RATES, n_layers] of each layer, by size of the batch
    uint32_t *kept;         // [n_layers] cold entries up to here stay, the others make room first
    struct st_stage (*predictors)[2]; // [n_layers] with weights in memory
    struct st_neuron_ref *refs;       // [neurons of a layer]
    int32_t *ready, *pending;         // [entries of a layer] of a round
    uint8_t *wanted;                  // [entries of a layer]
    int32_t *expected;                // [entries of a layer] taken before their turn
    size_t n_expected;
    uint64_t computed, possible; // neurons; of dense blocks
};

// The size of hot clusters.
void st_neurons_plan(const struct stint_model *model, struct st_neurons_plan *plan);
// Bytes that do not depend on n_hot and n_cold: predictors, tables.
uint64_t st_neurons_fixed_bytes(const struct stint_model *model,
                                const struct st_neurons_plan *plan);
// Clusters that are worth to run whole at batches of so many tokens, if there were room.
uint32_t st_neurons_hot_clusters(const struct stint_model *model,
                                 const struct st_neurons_plan *plan, size_t n_tokens);

// Which clusters are hot for each size of batch, and which cold entries are worth their room: fills
// hot_clusters and kept, of a zeroed one whose model and plan are set.
void st_neurons_divide(struct st_neurons *neurons);
// Clusters of a layer that stay in memory: those that are hot for the largest batch that is sparse.
uint32_t st_neurons_resident_clusters(const struct st_neurons *neurons, uint32_t layer);

// Reads the predictors. Borrows model and loader until close. STINT_E_IO, E_FORMAT, E_NOMEM.
stint_status st_neurons_open(const struct stint_model *model, const struct st_neurons_plan *plan,
                             struct st_loader *loader, struct st_neurons *neurons);
void st_neurons_close(struct st_neurons *neurons); // accepts a zeroed one

// Adds a layer's neurons to the block that has begun: hot ones, and those that scores [n_tokens,
// neurons], by place, names; NULL: all. Computes while it reads, unless `pipelined` is false.
// STINT_E_IO, E_FORMAT where an entry is not what was written.
stint_status st_neurons_run(struct st_neurons *neurons, uint32_t layer, const float *scores,
                            struct st_sparse *sparse, struct st_pool *pool, bool pipelined);
// Begins to read what these scores name of a layer that will run soon. They may be wrong: what is
// not used in the end was read for nothing.
void st_neurons_expect(struct st_neurons *neurons, uint32_t layer, const float *scores,
                       size_t n_tokens);
// False where everything fits: then nothing need be expected.
bool st_neurons_may_miss(const struct st_neurons *neurons);
// After a failure.
void st_neurons_reset(struct st_neurons *neurons);

#endif

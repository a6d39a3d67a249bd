// SPDX-License-Identifier: Apache-2.0
// Hybrid steps (PowerInfer-2, section 4.1): of a sparse block, hot clusters run dense on a second
// processor, while the host predicts, reads and computes the other neurons. Both sums are exact
// integers and are added in the end, so bits do not depend on who computed what, or first.
//
// A device that is fast gets clusters that are not hot, too. It computes them whole, but only the
// neurons that the predictor names count: the gates of the others become so small that their
// activation is 0. So what a block gives does not depend on the share, which follows from measured
// speeds.
//
// Larger batches have more hot clusters, and another share. A layer's clusters are cut into
// segments, each with a graph of its own, and a step runs the first ones. The device computes only
// what the host would compute too, so where it fails, the host does.
#ifndef ST_SESSION_WEIGHTS_HYBRID_H
#define ST_SESSION_WEIGHTS_HYBRID_H

#include "base/worker.h"
#include "device/mirror.h"
#include "neuron/dense.h"

enum {
    ST_HYBRID_BATCHES = 3, // of 1, of 2, and of up to ST_NEURON_TOKENS rows
    // For each batch one that is hot, and one that is the device's.
    ST_HYBRID_SEGMENTS = 2 * ST_HYBRID_BATCHES,
};

struct st_bounded;
struct st_run;

struct st_hybrid_segment {
    struct st_clusters clusters;
    uint32_t n;           // neurons
    const int32_t *order; // [n]
    uint32_t packed_rows; // of the first linear
    struct st_device_weights *weights[2];
    struct st_graph *graph;
};

// Seconds of a block: on the device for itself, and for each neuron; on the host for each neuron.
struct st_hybrid_rates {
    double device_block, device_neuron, host_neuron;
};

struct st_hybrid_options {
    struct st_device *device; // borrowed until close
    struct st_pool *pool;     // that computes the host's part
    float share;              // as stint_session_options.npu_hot
    // Not 0: this machine's own threads are the second processor, so many of them, and others
    // compute the host's part.
    uint32_t npu_threads, cpu_threads;
};

// hybrid_threads.c: they compute hot clusters where these lie, in the neurons' cache.
struct st_hybrid_threads {
    struct st_worker *worker; // NULL: there are none
    struct st_pool *npu, *cpu;
    struct st_device *device; // of the predictors: on the CPU's threads
    struct st_arena arena;    // what follows
    struct st_sparse block;
    struct st_neuron_ref *refs; // [neurons of a layer]
    size_t n_refs;
    const int32_t *sums;
};

struct st_hybrid {
    struct st_device *device; // NULL: there is no second processor, or it is threads
    struct st_hybrid_threads threads;
    float share;
    struct st_hybrid_rates rates[ST_HYBRID_BATCHES];
    size_t most;                                              // neurons of a segment
    struct st_mirror mirror;                                  // of the arena
    struct st_arena arena;                                    // what follows
    struct st_hybrid_segment (*segments)[ST_HYBRID_SEGMENTS]; // [n_layers]
    float *x;                                                 // [ST_NEURON_TOKENS, hidden]
    uint8_t *quantized, *middle[ST_HYBRID_SEGMENTS];
    int32_t *sums[ST_HYBRID_SEGMENTS]; // [ST_SPARSE_ROWS, hidden]
    struct st_outliers *in, *lists[ST_HYBRID_SEGMENTS];
    size_t in_capacity, capacity;                // of `in`, and of each of the lists
    float *add[ST_HYBRID_SEGMENTS];              // [ST_NEURON_TOKENS, packed rows]
    int32_t *add_row;                            // [ST_NEURON_TOKENS] 0, 1, 2..
    struct st_job *jobs[ST_HYBRID_SEGMENTS + 1]; // of the block at hand; the first one quantizes
    size_t n_jobs, n_begun;                      // and the segments that these jobs run
    uint64_t computed;                           // neurons, by the device
};

// Gives the device its share of the hot clusters, as far as it has room. One that fails while it is
// measured gets none.
stint_status st_hybrid_open(struct st_bounded *bounded, const struct st_hybrid_options *options);
void st_hybrid_close(struct st_bounded *bounded);

// hybrid_plan.c: measures the rates. Uses the block and the predictor's scratch.
stint_status st_hybrid_measure(struct st_bounded *bounded, struct st_pool *pool);

// hybrid_share.c: how many of n clusters the device computes, from the first on, while the host
// computes the others. named [n]: the neurons of each that the host would compute.
uint32_t st_hybrid_clusters(const struct st_hybrid_rates *rates, const float *named, uint32_t n,
                            uint32_t cluster_neurons);
// That of all layers and batches, into neurons->elsewhere; hot_only: of the hot clusters. share: as
// in struct st_hybrid_options. rates: [ST_HYBRID_BATCHES]. STINT_E_NOMEM.
stint_status st_hybrid_assign(struct st_neurons *neurons, const struct st_hybrid_rates *rates,
                              float share, bool hot_only);

// hybrid_segment.c: gives the device a segment whose clusters are set, if there are any; it stays
// without a graph where there is no room. The second call takes it back.
stint_status st_hybrid_open_segment(struct st_bounded *bounded, uint32_t layer,
                                    struct st_hybrid_segment *segment);
void st_hybrid_drop(struct st_hybrid_segment *segment);
// Runs a segment alone, of the block that has been set up, with the input x [its tokens, hidden].
stint_status st_hybrid_try(struct st_bounded *bounded, const float *x,
                           const struct st_hybrid_segment *segment);

// hybrid_threads.c: opens them, and a device for predictors on those of the host's part.
stint_status st_hybrid_open_threads(struct st_bounded *bounded,
                                    const struct st_hybrid_options *options);
void st_hybrid_close_threads(struct st_hybrid_threads *threads);
// Starts the threads on the clusters [0, *n) of a layer, `n_clusters` or as many as find room.
// pre: the block has begun
stint_status st_hybrid_begin_threads(struct st_bounded *bounded, uint32_t layer,
                                     uint32_t n_clusters, uint32_t *n);
// Waits for them and adds their sums to the block.
void st_hybrid_end_threads(struct st_bounded *bounded);

// The threads that compute the host's part of a block.
struct st_pool *st_hybrid_pool(const struct st_hybrid *hybrid, struct st_pool *all);

// Starts the device on the hot ones of its clusters of a block with the input x [n_tokens, hidden].
// *n: all of its clusters, [0, *n); 0: there are none, or it failed. pre: the block has begun
stint_status st_hybrid_begin(const struct st_run *run, const float *x, size_t n_tokens,
                             uint32_t *n);
// Starts it on the others, of which only what `scores` name counts (neuron/neurons.h). *n becomes 0
// if it failed.
stint_status st_hybrid_go_on(const struct st_run *run, const float *scores, size_t n_tokens,
                             uint32_t *n);
// Waits for the device and adds its sums to the block; where it failed, the host computes the
// clusters [0, n). `status`: how the host's part ended; what is returned after a failure.
stint_status st_hybrid_end(const struct st_run *run, stint_status status, const float *scores,
                           uint32_t n);

#endif

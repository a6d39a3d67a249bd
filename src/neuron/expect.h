// SPDX-License-Identifier: Apache-2.0
// Predicts the misses of a cache region (neuron/cache.h) from how often its pieces are wanted.
// These are pure functions: a memory bound can be judged before anything runs. They assume that
// pieces are wanted independently of each other and of the token before. Real tokens resemble their
// predecessors, so they miss less.
#ifndef ST_NEURON_EXPECT_H
#define ST_NEURON_EXPECT_H

#include <stddef.h>
#include <stdint.h>

// Misses of one round through n_ids pieces in turn, each given back to be evicted first. n_entries
// fit, and `held` of them are taken at the same time.
double st_expect_cyclic(double n_ids, double n_entries, double held);

// Entries of cold neurons; the most wanted ones of a layer come first.
struct st_cold_region {
    const float *rates; // [n_layers, n_entries] how often a token wants each, in [0, 1]
    uint32_t n_layers, n_entries;
    const uint32_t *first; // [n_layers] the entries before it are in hot clusters
    const uint32_t *kept;  // [n_layers] the entries before it are evicted last, in LRU order; the
                           // others are evicted first
};

// The number of tokens after which an unused entry in LRU order is evicted, if `room` of them fit.
// INFINITY: all entries that are ever wanted fit; 0: there is no room.
double st_expect_age(const struct st_cold_region *region, double room);
// misses [n_layers]: the entries of each layer that a token must read if n_cold fit.
void st_expect_cold(const struct st_cold_region *region, double n_cold, double *misses);
// Entries of a layer that a token wants.
double st_expect_wanted(const struct st_cold_region *region, uint32_t layer);

// Reads of a file for adjacent columns of `bytes` each, of which each is wanted with probability
// `rate`. Reads are whole blocks of ST_LOAD_BLOCK; columns whose blocks touch share one read. Real
// outliers cluster, so they need up to a quarter fewer reads.
struct st_expected_reads {
    double reads, bytes; // per column, wanted or not
};
struct st_expected_reads st_expect_columns(size_t bytes, double rate);

// A predictor predicts more neurons than are active. Returns the probability that a neuron is
// predicted which is active with probability `rate`: 1 - (1 - rate)^exponent.
double st_expect_predicted(double rate, double exponent);
// The exponent for which the average probability is `mean`.
double st_expect_exponent(const float *rates, size_t n, double mean);

#endif

// SPDX-License-Identifier: Apache-2.0
// What a region of the cache (neuron/cache.h) will miss, from how often its pieces are wanted:
// pure functions, so that a bound of memory can be judged before anything runs. Pieces are taken to
// be wanted independently of each other and of the token before, which they are not quite: real
// tokens resemble their predecessors, and miss less.
#ifndef ST_NEURON_EXPECT_H
#define ST_NEURON_EXPECT_H

#include <stddef.h>
#include <stdint.h>

// Misses of one round through n_ids pieces that come in turn and are given back to be evicted
// first, where n_entries fit and `held` of them are taken at the same time.
double st_expect_cyclic(double n_ids, double n_entries, double held);

// Entries of cold neurons, the most wanted ones of a layer first.
struct st_cold_region {
    const float *rates; // [n_layers, n_entries] how often a token wants each, in [0, 1]
    uint32_t n_layers, n_entries;
    const uint32_t *first; // [n_layers] those before it are elsewhere: in hot clusters
    const uint32_t *kept;  // [n_layers] those before it stay, the longest unused are evicted (LRU);
                           // the others are evicted before them
};

// After how many tokens without use an entry that stays is evicted, if `room` of them fit. INFINITY
// where all fit that are ever wanted, 0 where there is no room.
double st_expect_age(const struct st_cold_region *region, double room);
// misses [n_layers]: entries that a token must read, where n_cold fit.
void st_expect_cold(const struct st_cold_region *region, double n_cold, double *misses);
// Entries of a layer that a token wants.
double st_expect_wanted(const struct st_cold_region *region, uint32_t layer);

// Reads of a file for columns of `bytes` each that lie one behind the other, of which each is
// wanted with probability `rate`: whole blocks of ST_LOAD_BLOCK, and one read for columns whose
// blocks meet. Real outliers come together, so that up to a quarter fewer reads are needed.
struct st_expected_reads {
    double reads, bytes; // for each column there is
};
struct st_expected_reads st_expect_columns(size_t bytes, double rate);

// A predictor names more neurons than are active: how often one of them is named that is active
// with probability `rate`, where the odds are spread as the activity is.
double st_expect_predicted(double rate, double exponent);
// The exponent by which `mean` of them are named on average.
double st_expect_exponent(const float *rates, size_t n, double mean);

#endif

// SPDX-License-Identifier: Apache-2.0
// How the neurons of a feed-forward block lie in a package: bundles (kernels/neuron.h), of those
// that are active most often first, in entries of whole blocks, so that one direct read brings one.
#ifndef ST_FORMAT_NEURON_LAYOUT_H
#define ST_FORMAT_NEURON_LAYOUT_H

#include "base/size.h"

#include <stdint.h>

enum {
    ST_NEURON_BLOCK = 4096,
    ST_NEURON_ROW = 64,         // rows are padded to a multiple of this
    ST_NEURON_MOST = 1 << 20,   // neurons of a block
    ST_NEURON_MOST_K = 1 << 16, // weights of a row
};

struct st_neuron_layout {
    uint32_t n, parts; // neurons; rows and column of one: 3 where the block is gated, else 2
    size_t k;          // bytes of a row, padded
    size_t bundle_bytes, entry_bytes;
    uint32_t per_entry, n_entries; // several neurons where they are small
};

// pre: all at least 1; n <= ST_NEURON_MOST, parts <= 3, k <= ST_NEURON_MOST_K
static inline struct st_neuron_layout st_neuron_layout(uint32_t n, uint32_t parts, size_t k) {
    struct st_neuron_layout l = {.n = n, .parts = parts, .k = st_round_up(k, ST_NEURON_ROW)};
    l.bundle_bytes = parts * l.k;
    l.per_entry = (uint32_t)st_max(1, ST_NEURON_BLOCK / l.bundle_bytes);
    l.entry_bytes = st_round_up(l.per_entry * l.bundle_bytes, ST_NEURON_BLOCK);
    l.n_entries = (uint32_t)st_ceil_div(n, l.per_entry);
    return l;
}

#endif

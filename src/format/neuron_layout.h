// SPDX-License-Identifier: Apache-2.0
// How the neurons of a feed-forward block lie in a package: bundles (kernels/neuron.h), of those
// that are active most often first, in entries that one read brings.
#ifndef ST_FORMAT_NEURON_LAYOUT_H
#define ST_FORMAT_NEURON_LAYOUT_H

#include "base/size.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ST_NEURON_BLOCK = 4096,
    ST_NEURON_ROW = 64,        // rows are padded to a multiple of this
    ST_NEURON_WASTE = 16,      // entries are whole blocks where that wastes at most a 16th
    ST_NEURON_MAX = 1 << 20,   // neurons of a block
    ST_NEURON_MAX_K = 1 << 16, // weights of a row
};

// How a weight is stored: an INT8 number, or 4 bits that stand for one (kernels/neuron.h).
enum st_neuron_code { ST_NEURON_INT8, ST_NEURON_LEVELS, ST_N_NEURON_CODES };

struct st_neuron_layout {
    uint32_t n, parts; // neurons; rows and column of one: 3 where the block is gated, else 2
    enum st_neuron_code code;
    size_t width, k; // weights of a row; the same, padded
    size_t row_bytes, bundle_bytes, entry_bytes;
    uint32_t per_entry, n_entries; // several neurons where they are small
};

static inline unsigned st_neuron_bits(enum st_neuron_code code) {
    return code == ST_NEURON_LEVELS ? 4 : 8;
}

// Of k weights, a multiple of ST_NEURON_ROW. Levels have a byte more for each ST_NEURON_ROW.
static inline size_t st_neuron_row_bytes(size_t k, enum st_neuron_code code) {
    return code == ST_NEURON_LEVELS ? k / 2 + k / ST_NEURON_ROW : k;
}

// pre: all at least 1; n <= ST_NEURON_MAX, parts <= 3, k <= ST_NEURON_MAX_K
static inline struct st_neuron_layout st_neuron_layout(uint32_t n, uint32_t parts, size_t k,
                                                       enum st_neuron_code code) {
    struct st_neuron_layout l = {.n = n, .parts = parts, .code = code, .width = k};
    l.k = st_round_up(k, ST_NEURON_ROW);
    l.row_bytes = st_neuron_row_bytes(l.k, code);
    l.bundle_bytes = parts * l.row_bytes;
    l.per_entry = (uint32_t)st_max(1, ST_NEURON_BLOCK / l.bundle_bytes);
    size_t bytes = l.per_entry * l.bundle_bytes, blocks = st_round_up(bytes, ST_NEURON_BLOCK);
    bool few = (blocks - bytes) * ST_NEURON_WASTE <= blocks;
    l.entry_bytes = few ? blocks : st_round_up(bytes, ST_NEURON_ROW);
    l.n_entries = (uint32_t)st_ceil_div(n, l.per_entry);
    return l;
}

#endif

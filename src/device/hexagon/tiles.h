// SPDX-License-Identifier: Apache-2.0
// How a linear is cut to fit the DSP's tightly coupled memory (VTCM), for both sides: the host asks
// whether it fits at all, the program computes with it.
//
// VTCM holds one group's weights, which DMA brings, and the sums of a tile of input rows: the
// vector unit reads and writes nothing else while it multiplies. The tile's input rows are read by
// the scalar unit, four elements a product, and lie in its cache.
#ifndef ST_DEVICE_HEXAGON_TILES_H
#define ST_DEVICE_HEXAGON_TILES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TILE_GROUP = 64,            // packed rows: two vectors of 32 sums
    TILE_STEP = 8,              // input rows of one call of the product
    TILE_K = 8,                 // k is padded to a multiple of this
    TILE_ROWS = 512,            // most input rows of a tile
    TILE_INPUT_BYTES = 1 << 19, // most bytes of a tile's input: what may stay in the cache
    TILE_VTCM_BYTES = 1 << 22,  // what the program has, as Snapdragons since 2020
};

struct tile_plan {
    uint32_t k;           // padded
    uint32_t group_bytes; // of a group's weights
    uint32_t rows;        // of a tile; a multiple of TILE_STEP
    uint32_t sums_offset; // where in VTCM the sums lie: [rows, TILE_GROUP] int32
    uint32_t vtcm_bytes;  // that are used
};

static inline uint32_t tile_padded_k(uint32_t k) {
    return (k + TILE_K - 1) / TILE_K * TILE_K;
}

static inline uint32_t tile_least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

// False where not even one step of rows fits. pre: k < 2^20
static inline bool tile_plan_make(uint32_t k, uint32_t n_rows, uint32_t vtcm_bytes,
                                  struct tile_plan *plan) {
    const uint32_t sums_row = TILE_GROUP * (uint32_t)sizeof(int32_t);
    struct tile_plan p = {.k = tile_padded_k(k)};
    p.group_bytes = p.sums_offset = p.k * TILE_GROUP;
    if (p.k == 0 || p.group_bytes > vtcm_bytes) return false;
    p.rows = tile_least((vtcm_bytes - p.group_bytes) / sums_row, TILE_INPUT_BYTES / p.k);
    p.rows = tile_least(p.rows, TILE_ROWS) / TILE_STEP * TILE_STEP;
    if (p.rows == 0) return false;
    p.rows = tile_least(p.rows, (n_rows + TILE_STEP - 1) / TILE_STEP * TILE_STEP);
    p.vtcm_bytes = p.sums_offset + p.rows * sums_row;
    *plan = p;
    return true;
}

#endif

// SPDX-License-Identifier: Apache-2.0
// How a linear is cut to fit the DSP's tightly coupled memory (VTCM), for both sides: the host asks
// whether it fits at all, the program computes with it.
//
// VTCM holds one group's weights, which DMA brings, and the sums of one step of input rows: the
// vector unit reads and writes nothing else while it multiplies. A tile is as many input rows as
// may lie in the scalar unit's cache, which reads them, four elements a product.
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
    TILE_VTCM_BYTES = 1 << 22,  // what the program assumes to have
};

struct tile_plan {
    uint32_t k;           // padded
    uint32_t group_bytes; // of a group's weights; behind them the sums: [TILE_STEP, TILE_GROUP]
    uint32_t rows;        // of a tile; a multiple of TILE_STEP
    uint32_t vtcm_bytes;  // that are used
};

static inline uint32_t tile_padded_k(uint32_t k) {
    return (k + TILE_K - 1) / TILE_K * TILE_K;
}

static inline uint32_t tile_least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

// False where it does not fit. pre: k < 2^20
static inline bool tile_plan_make(uint32_t k, uint32_t vtcm_bytes, struct tile_plan *plan) {
    const uint32_t sums_bytes = TILE_STEP * TILE_GROUP * (uint32_t)sizeof(int32_t);
    struct tile_plan p = {.k = tile_padded_k(k)};
    p.group_bytes = p.k * TILE_GROUP;
    p.vtcm_bytes = p.group_bytes + sums_bytes;
    if (p.k == 0 || p.vtcm_bytes > vtcm_bytes || p.k > TILE_INPUT_BYTES / TILE_STEP) return false;
    p.rows = tile_least(TILE_INPUT_BYTES / p.k, TILE_ROWS) / TILE_STEP * TILE_STEP;
    *plan = p;
    return true;
}

#endif

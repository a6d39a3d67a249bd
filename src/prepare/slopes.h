// SPDX-License-Identifier: Apache-2.0
// What coordinate descent follows: second moments of a linear's inputs times what the codes of its
// weights miss, half the gradient of the squared error of its outputs. Where the CPU multiplies
// 16-bit integers faster than floats both are rounded to such: to 11 and 12 bits, after channels of
// any size were brought to one scale. Slopes that are off by a hundredth take the same codes but
// where two are nearly as good.
#ifndef ST_PREPARE_SLOPES_H
#define ST_PREPARE_SLOPES_H

#include "base/status.h"
#include "base/thread.h"
#include "kernels/int16.h"

#include <stdint.h>

// The moments of one input, shared by all rows of all its linears.
struct st_slopes {
    size_t k;
    const float *moments; // [k, k] by st_moments_finish()
    const struct st_tile *tile;
    const struct st_int16 *int16; // NULL: products of floats, and nothing of what follows
    float *roots;                 // [k] of the diagonal, by which columns are divided
    uint32_t *pairs;              // [k, row] and some zeros
    float *scales;                // [blocks of k, k] of ST_INT16_BLOCK columns, and some zeros
    size_t row, scale_row;
};

// With room for `widest` channels. STINT_E_NOMEM.
stint_status st_slopes_open(size_t widest, uint64_t cpu_flags, struct st_slopes *slopes);
void st_slopes_close(struct st_slopes *slopes); // accepts a zeroed one
// The moments are borrowed. An odd number of channels has products of floats.
void st_slopes_set(struct st_slopes *slopes, const float *moments, size_t k, struct st_pool *pool);

// What the codes of some rows miss: `lanes` numbers for each channel.
struct st_missed {
    const struct st_slopes *slopes;
    size_t lanes, padded;
    float *floats;   // in the order of st_tile_pack(), [k, padded]
    uint32_t *pairs; // the same of pairs of channels, [k / 2, padded]
    float *scales;   // [blocks of k, padded]
};

// Floats of the memory for `lanes` numbers for each of k channels.
size_t st_missed_floats(const struct st_tile *tile, size_t k, size_t lanes);
// Nothing is missed. Borrows the memory.
void st_missed_begin(const struct st_slopes *slopes, size_t lanes, float *memory,
                     struct st_missed *missed);
// Sets channels [first, first + n): missed[i * row + lane]. They lie within a group of
// ST_NESTED_GROUP, of which `first` is the first.
void st_missed_put(struct st_missed *m, size_t first, size_t n, const float *missed, size_t row);
// slope[i * row + lane] of channel first + i of such a group, from channels within
// ST_MOMENTS_REACH before `end`, behind which nothing is missed yet. Lanes up to `padded` are
// written, and up to ST_TILE_MAX_M rows past the n.
void st_missed_slopes(const struct st_missed *m, size_t first, size_t n, size_t end, float *slope,
                      size_t row);

#endif

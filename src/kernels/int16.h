// SPDX-License-Identifier: Apache-2.0
// Products of a prompt's tokens with quantized blocks where a CPU multiplies 16-bit integers faster
// than floats. Weights and inputs get one scale for each row, or token, and ST_INT16_BLOCK elements
// of k, so that sums of a whole block stay integers. Elements lie in pairs: 32 bits, the even
// element in the lower half, so that a pair takes the place that a float has in kernels/tile.h.
#ifndef ST_KERNELS_INT16_H
#define ST_KERNELS_INT16_H

#include "base/dtype.h"
#include "kernels/tile.h"

enum {
    ST_INT16_BLOCK = 256,
    // A block's products of these fit a sum of 32 bits.
    ST_INT16_MAX_WEIGHT = 2047,
    ST_INT16_MAX_INPUT = 4095,
};

// c[m, lane] += a_scale[m] * b_scale[lane] times the sum over k of both halves' products of
// a[m * a_row + k] and b[k * width + lane], for one block: k <= ST_INT16_BLOCK / 2 pairs. The sum
// is exact; then it is rounded to float, the scales are multiplied, and one multiply-add follows.
typedef void st_int16_tile_fn(size_t k, const uint32_t *a, size_t a_row, const float *a_scale,
                              const uint32_t *b, const float *b_scale, float *c, size_t c_row);
// out[i] = round(x[i] / scale), halves to even, so that the largest magnitude becomes max_q;
// returns the scale. Where x is not finite, out is 0 and the scale is not finite either. n <=
// ST_INT16_BLOCK.
typedef float st_int16_quantize_fn(const float *x, size_t n, int max_q, int16_t *out);
// The nearest whole numbers, halves to even, of x[i, lane] * factor[i] * inverse[lane] of n
// elements of k, as pairs [n / 2, width]; returns the largest magnitude before rounding, of numbers
// that are one. Above ST_INT16_MAX_INPUT the pairs are anything. n: even; width: a multiple of the
// lanes.
typedef float st_int16_pairs_fn(const float *x, const float *factor, const float *inverse, size_t n,
                                size_t width, uint32_t *pairs);
// out[r * out_row + i] = element first + i of row r, i in [0, n), of the rows of blocks that lie
// row_bytes apart at src; the largest magnitude that its scales and minima allow becomes
// ST_INT16_MAX_WEIGHT, and all are off by at most 0.7 (kernels/int16_codes.h). scales[n_rows] get
// the scales. Where one of a row's is not finite, its elements are 0 and its scale is not finite
// either. first and n are multiples of the type's block_items; 0 < n <= ST_INT16_BLOCK, n_rows <=
// ST_TILE_MAX_M.
typedef void st_int16_blocks_fn(const void *src, size_t row_bytes, size_t n_rows, size_t first,
                                size_t n, int16_t *out, size_t out_row, float *scales);

struct st_int16 {
    const char *name;
    uint64_t isa;             // ST_CPU_* bits it needs
    size_t m, lanes, vectors; // as in struct st_tile; widths are multiples of lanes
    st_int16_tile_fn *fn[ST_TILE_MAX_VECTORS];
    st_int16_quantize_fn *quantize;
    st_int16_pairs_fn *pairs;
    st_int16_blocks_fn *blocks[ST_N_DTYPES]; // NULL: not a type of blocks
};

// Best first; ends with a NULL name. The scalar row, which is the definition, has no isa bits.
extern const struct st_int16 st_int16s[];
// The best one, or NULL where floats are as fast. Its m, lanes and vectors are those of the tile
// that st_tile_select() takes.
const struct st_int16 *st_int16_select(uint64_t cpu_flags);

#endif

// SPDX-License-Identifier: Apache-2.0
// The kernels of the DSP program.
#ifndef DSP_KERNELS_H
#define DSP_KERNELS_H

#include "device/hexagon/tiles.h"
#include "kernels/elementwise.h"

// sums[t, r] = start[t] + sum over k of w[r, k] * x[t, k], for the first n_rows of TILE_STEP input
// rows t and the TILE_GROUP packed rows r of a group; 32-bit sums that wrap. What lies in the other
// rows of sums may be overwritten. w: unsigned bytes, [k / 4][r][4], one vector aligned. x: signed
// bytes, [k / 8][t][8], aligned by 8. k: a multiple of TILE_K. sums: one vector aligned. n_rows in
// [1, TILE_STEP].
typedef void dsp_product_fn(const uint8_t *w, const int8_t *x, uint32_t k, uint32_t n_rows,
                            const int32_t *start, int32_t *sums);
dsp_product_fn dsp_product_scalar, dsp_product_hvx;

// Brings input rows into that order: x [n_rows, x_row bytes] -> [ceil(n_rows / 8)][k / 8][8][8],
// with zeros for rows and elements that are not there. n: elements of a row. start[t] = -128 * the
// sum of row t: what unsigned weights w + 128 add too much. pre: x and x_row aligned by 8.
void dsp_pack_rows(const int8_t *x, uint32_t x_row, uint32_t n_rows, uint32_t n, int8_t *packed,
                   int32_t *start);

// From host memory to VTCM. bytes: a multiple of a vector; both aligned by one.
void dsp_copy_group(void *to, const void *from, uint32_t bytes);

// y[i] = x[i] * weight[i] / root(mean(x^2) + epsilon); sums as the host's vectors of 4, 8 or 16
// lanes add them. y may be x.
enum { DSP_MAX_LANES = 16 };
typedef void dsp_rmsnorm_fn(const float *x, const float *weight, float epsilon, uint32_t n,
                            uint32_t lanes, float *y);
dsp_rmsnorm_fn dsp_rmsnorm;
// The square root, correctly rounded to nearest even; a number that has none is returned.
float dsp_root(float x);

// Quantization, activations and what device/epilogue.c needs; the rest is NULL.
extern const struct st_elementwise dsp_elementwise;

#endif

// SPDX-License-Identifier: Apache-2.0
// The INT8 products of Hexagon's matrix unit (HMX), as the operations that it has: tiles of 64 x 32
// activations by 32 x 32 weights into 64 x 32 accumulators of 32 bits. No compiler that may be
// installed without a licence has its instructions, so hmx_mock.c computes the same tiles with HVX.
// It shows that the layouts and the walk over tiles are right, and nothing about speed.
#ifndef DSP_HMX_H
#define DSP_HMX_H

#include "kernels.h"

enum {
    HMX_ROWS = 64, // of activations
    HMX_K = 32,
    HMX_COLUMNS = 32,
    HMX_X_BYTES = HMX_ROWS * HMX_K,
    HMX_W_BYTES = HMX_K * HMX_COLUMNS,
};

// The accumulators. Aligned by a vector.
struct hmx {
    int32_t sums[HMX_ROWS][HMX_COLUMNS] __attribute__((aligned(128)));
    uint32_t n_products; // of tiles, since the program began
};

// sums[t][n] = start[t]
void dsp_hmx_start(struct hmx *hmx, const int32_t *start);
// sums[t][n] += sum over k of x[t][k] * w[k / 4][n][k % 4]. x: signed bytes [64][32]; w: unsigned
// bytes [8][32][4]. Both aligned by a vector.
void dsp_hmx_multiply(struct hmx *hmx, const int8_t *x, const uint8_t *w);

// The product of dsp_product_fn for up to 64 input rows at once. x: as dsp_pack_rows leaves rows,
// [ceil(n_rows / 8)][k / 8][8][8]; start: for these rows; sums: [n_rows][TILE_GROUP]. k: any
// multiple of TILE_K; what is missing in the last tile counts as zero.
void dsp_product_hmx(struct hmx *hmx, const uint8_t *w, const int8_t *x, uint32_t k,
                     uint32_t n_rows, const int32_t *start, int32_t *sums);

#endif

// SPDX-License-Identifier: Apache-2.0
// The register tile for one instruction set: TILE_M rows by 1..TILE_VECTORS vectors of
// accumulators, one multiply-add per element and step of k. The strides of `a` are pinned to
// constants where they are 1, so that the compiler addresses whole rows from a few registers.
// Elements are floats, unless the file that includes this one defines TILE_ELEMENT and its three
// functions.
#include "kernels/tile.h"
#include "kernels/vec.h"

#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))

#ifndef TILE_ELEMENT
#define TILE_ELEMENT        float
#define element_load        vf_load
#define element_set1        vf_set1
#define element_add_product vf_fma
#endif

INLINE void tile(size_t n_vectors, size_t k, const TILE_ELEMENT *a, size_t a_row, size_t a_col,
                 const TILE_ELEMENT *b, float *c, size_t c_row) {
    vf sum[TILE_M][TILE_VECTORS];
    UNROLL for (size_t m = 0; m < TILE_M; m++) UNROLL for (size_t v = 0; v < n_vectors; v++)
        sum[m][v] = vf_load(c + m * c_row + v * VF_LANES);
    for (size_t i = 0; i < k; i++, a += a_col, b += n_vectors * VF_LANES) {
        vf x[TILE_VECTORS];
        UNROLL for (size_t v = 0; v < n_vectors; v++) x[v] = element_load(b + v * VF_LANES);
        UNROLL for (size_t m = 0; m < TILE_M; m++) {
            vf w = element_set1(a[m * a_row]);
            UNROLL for (size_t v = 0; v < n_vectors; v++) sum[m][v] =
                element_add_product(w, x[v], sum[m][v]);
        }
    }
    UNROLL for (size_t m = 0; m < TILE_M; m++) UNROLL for (size_t v = 0; v < n_vectors; v++)
        vf_store(c + m * c_row + v * VF_LANES, sum[m][v]);
}

INLINE void tile_any_stride(size_t n_vectors, size_t k, const TILE_ELEMENT *a, size_t a_row,
                            size_t a_col, const TILE_ELEMENT *b, float *c, size_t c_row) {
    if (a_col == 1)
        tile(n_vectors, k, a, a_row, 1, b, c, c_row);
    else if (a_row == 1)
        tile(n_vectors, k, a, 1, a_col, b, c, c_row);
    else
        tile(n_vectors, k, a, a_row, a_col, b, c, c_row);
}

// Rows i and i + VF_LANES / 2, zipped, become rows 2 i and 2 i + 1: an element's place, as the bits
// of its row and column one after another, turns by one bit. When it has turned by half of them,
// row and column are exchanged.
INLINE void transpose(const float *a, size_t a_row, float *b, size_t b_row) {
    vf row[VF_LANES], zipped[VF_LANES];
    UNROLL for (size_t i = 0; i < VF_LANES; i++) row[i] = vf_load(a + i * a_row);
    UNROLL for (size_t turn = 1; turn < VF_LANES; turn *= 2) {
        UNROLL for (size_t i = 0; i < VF_LANES / 2; i++) {
            zipped[2 * i] = vf_zip_low(row[i], row[i + VF_LANES / 2]);
            zipped[2 * i + 1] = vf_zip_high(row[i], row[i + VF_LANES / 2]);
        }
        UNROLL for (size_t i = 0; i < VF_LANES; i++) row[i] = zipped[i];
    }
    UNROLL for (size_t i = 0; i < VF_LANES; i++) vf_store(b + i * b_row, row[i]);
}

// SPDX-License-Identifier: Apache-2.0
// The register tile of every float matrix product with many columns: rows of A (weights, keys,
// values) are broadcast against columns that lie in vector lanes (prompt tokens, queries). A needs
// no repacking; B is packed once per product and shared by all rows.
#ifndef ST_KERNELS_TILE_H
#define ST_KERNELS_TILE_H

#include <stddef.h>
#include <stdint.h>

// c[m, lane] += sum over k of a[m * a_row + k * a_col] * b[k * width + lane]
// for m in [0, row.m) and lane in [0, width), width = vectors * row.lanes.
// Row m of c starts at c + m * c_row. One multiply-add per k in ascending order for every element:
// the result does not depend on width, m or the row's place in a larger product (per instruction
// set).
typedef void st_tile_fn(size_t k, const float *a, size_t a_row, size_t a_col, const float *b,
                        float *c, size_t c_row);

enum { ST_TILE_MAX_VECTORS = 4, ST_TILE_MAX_M = 16, ST_TILE_MAX_WIDTH = 64 };

// b[j * b_row + i] = a[i * a_row + j]  for i, j in [0, lanes) of the row.
typedef void st_tile_transpose_fn(const float *a, size_t a_row, float *b, size_t b_row);

struct st_tile {
    const char *name;
    uint64_t isa; // ST_CPU_* bits it needs
    size_t m;     // rows of A per call
    size_t lanes; // floats per vector
    size_t
        vectors; // widest tile, <= ST_TILE_MAX_VECTORS; m * vectors accumulators stay in registers
    st_tile_fn *fn[ST_TILE_MAX_VECTORS]; // fn[v - 1]: width v * lanes
    st_tile_transpose_fn *transpose;
};

// All rows, best first; ends with a row whose name is NULL.
extern const struct st_tile st_tiles[];
// The best one for these flags.
const struct st_tile *st_tile_select(uint64_t cpu_flags);

// Packs x [n_tokens, k] (rows x_row apart) into tile order: tokens in blocks of at most vectors *
// lanes, the last block rounded up to whole vectors and padded with zeros. Block at token t0 with
// width w starts at out + t0 * k and holds [k, w]. Returns the padded number of tokens.
size_t st_tile_pack(const struct st_tile *tile, const float *x, size_t x_row, size_t n_tokens,
                    size_t k, float *out);

// b[j * b_row + i] = a[i * a_row + j]  for i in [0, n_rows), j in [0, n_columns).
void st_tile_transpose(const struct st_tile *tile, const float *a, size_t a_row, size_t n_rows,
                       size_t n_columns, float *b, size_t b_row);

// Tokens after padding; the width of the block that starts at t0; where a block starts. There are
// n_tokens / (vectors * lanes) blocks, rounded up.
size_t st_tile_padded(const struct st_tile *tile, size_t n_tokens);
size_t st_tile_width(const struct st_tile *tile, size_t n_tokens, size_t t0);
size_t st_tile_block_start(const struct st_tile *tile, size_t n_tokens, size_t block);

#endif

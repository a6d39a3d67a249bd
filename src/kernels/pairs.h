// SPDX-License-Identifier: Apache-2.0
// Products in BF16 for attention (llm.npu's float subgraphs on a CPU with BF16 dot products). The
// elements of k lie in pairs: 32 bits, the even element in the lower half, so that a pair takes the
// place that a float has in kernels/tile.h, and k counts pairs. Inputs are rounded to nearest even,
// sums are floats. Subnormal inputs may count as 0.
#ifndef ST_KERNELS_PAIRS_H
#define ST_KERNELS_PAIRS_H

#include "kernels/tile.h"

// c[m, lane] += sum over k of both halves of a[m * a_row + k * a_col] times those of
// b[k * width + lane], else as st_tile_fn: in ascending order of k, the same for every width.
typedef void st_pair_tile_fn(size_t k, const uint32_t *a, size_t a_row, size_t a_col,
                             const uint32_t *b, float *c, size_t c_row);

enum { ST_PAIRS_MAX_M = 32 };

struct st_pairs {
    const char *name;
    uint64_t isa;             // ST_CPU_* bits it needs
    size_t m, lanes, vectors; // as in struct st_tile; widths are multiples of lanes
    st_pair_tile_fn *fn[ST_TILE_MAX_VECTORS];
    // Of both, the output may begin where x begins.
    // out[i] = x[2 i], x[2 i + 1] for i in [0, n): keys, whose rows are k.
    void (*join)(const float *x, size_t n, uint32_t *out);
    // x [n_rows, n]: out[r * n + i] = x[2 r, i], x[2 r + 1, i]; behind an odd number of rows
    // follows one of zeros. Values, whose columns are k; queries and probabilities in lanes.
    void (*zip)(const float *x, size_t n_rows, size_t n, uint32_t *out);
    // A thread calls fn between these two only.
    void (*begin)(void);
    void (*end)(void);
};

// Best first; ends with a NULL name. The scalar row, which is the definition, has no isa bits.
extern const struct st_pairs st_pairs[];
// The best one that is faster than floats on this CPU, or NULL. Its lanes and vectors are those of
// the tile that st_tile_select() takes.
const struct st_pairs *st_pairs_select(uint64_t cpu_flags);

#endif

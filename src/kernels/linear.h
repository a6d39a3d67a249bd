// SPDX-License-Identifier: Apache-2.0
// A linear: y[t, n] = sum over k of x[t, k] * w[n, k] + bias[n], for some of its rows n. Several
// paths lead there; each packs its input in its own order, once for all linears that share it. The
// result of one output depends on its row and token alone, not on which call or thread computed it.
#ifndef ST_KERNELS_LINEAR_H
#define ST_KERNELS_LINEAR_H

#include "kernels/dequantize.h"
#include "kernels/elementwise.h"
#include "kernels/gemv.h"
#include "kernels/int16.h"
#include "kernels/nested_values.h"
#include "kernels/pairs.h"
#include "kernels/tile.h"

#include <stdbool.h>

enum {
    ST_LINEAR_ROWS = 64,      // rows a path keeps sums of
    ST_LINEAR_FEW_TOKENS = 4, // most tokens that gemv is selected for; for more, tiles are faster
};

struct st_linear_kernels {
    const struct st_tile *tile;
    const struct st_dequantize *dequantize;
    const struct st_gemv *gemv;
    const struct st_pairs *pairs; // NULL where no path in BF16 is selected
    const struct st_dequantize_bf16 *dequantize_bf16;
    const struct st_int16 *int16; // NULL where no path in 16-bit integers is selected
    const struct st_nested_values *nested;
    const struct st_elementwise *elementwise;
};

struct st_linear_args {
    const void *w; // row 0, as stored
    size_t row_bytes;
    enum st_dtype dtype;
    const struct st_nested_weight *nested; // instead of those three, for st_linear_nested_path
    unsigned bits;                         // of nested weights
    size_t k;
    size_t n_tokens;
    const float *x;    // packed by the path, or [n_tokens, k] where it does not pack
    const float *bias; // [rows] or NULL
    float *y;          // y[t * y_row + n], n counted from row 0
    size_t y_row;
};

// Two linears with n_rows rows each that share an input, the second of which gates the first. Their
// y and bias are not used.
struct st_linear_gated {
    const struct st_linear_args *up, *gate;
    size_t n_rows;
    enum st_act act;
    float *packed; // act(gate) * up, as pack() has [n_tokens, n_rows]
};

// What inputs and weights are rounded to.
enum st_linear_rounding { ST_LINEAR_EXACT, ST_LINEAR_BF16, ST_LINEAR_INT16 };

struct st_linear_path {
    const char *name;
    uint64_t isa, without; // ST_CPU_* bits it needs, and those with which others are as fast
    enum st_linear_rounding rounding;
    bool (*takes)(enum st_dtype dtype, size_t k, size_t n_tokens);
    // Tokens packed together; pack() works on one block of x [n_tokens, k] at a time. 0: no
    // packing.
    size_t (*block_tokens)(const struct st_linear_kernels *kernels);
    void (*pack)(const struct st_linear_kernels *kernels, const float *x, size_t n_tokens, size_t k,
                 size_t block, float *out);
    // Rows [row0, row1); scratch: st_linear_scratch_floats floats, one per caller.
    void (*rows)(const struct st_linear_kernels *kernels, const struct st_linear_args *args,
                 size_t row0, size_t row1, float *scratch);
    // Rows [row0, row1) of both, as what the next linear takes: nothing is stored in between. row0
    // is even, and so is row1 unless it is the last. NULL: the path cannot do this.
    void (*gated)(const struct st_linear_kernels *kernels, const struct st_linear_gated *gated,
                  size_t row0, size_t row1, float *scratch);
};

// Best first; the last one takes everything. Ends with a NULL name.
extern const struct st_linear_path st_linear_paths[];
// True if the CPU can run it and it takes such a linear, exactly or, with `fast`, in any way.
bool st_linear_path_fits(const struct st_linear_path *path, uint64_t cpu_flags, bool fast,
                         enum st_dtype dtype, size_t k, size_t n_tokens);

// The path that rounds to integers of 16 bits whatever weights it meets, or NULL where floats are
// as fast. Its results are off by some ten-thousandths, which is less than texts differ by.
const struct st_linear_path *st_linear_int16_path(uint64_t cpu_flags, size_t k);

// The path that rounds nested weights to numbers of 16 bits, or NULL where integer products of
// their codes (kernels/nested.h) are better.
const struct st_linear_path *st_linear_nested_path(uint64_t cpu_flags);

// Most rows of a call whose tiles are all full.
static inline size_t st_linear_whole_rows(const struct st_tile *tile) {
    return ST_LINEAR_ROWS / tile->m * tile->m;
}

// Enough for every path.
size_t st_linear_scratch_floats(const struct st_tile *tile, size_t n_tokens);
size_t st_linear_packed_floats(const struct st_tile *tile, size_t n_tokens, size_t k);

#endif

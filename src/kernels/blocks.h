// SPDX-License-Identifier: Apache-2.0
// Products of quantized blocks as a GGUF file has them with up to 16 quantized inputs: integers
// within a block's parts, floats between them. Nothing is repacked; docs/FORMAT.md has the layouts.
//
// Every block type is the same to a kernel: parts of 16 or 32 elements, each with a scale and a
// minimum, so that an element is scale * code - minimum. Codes are whole numbers of 8 bits.
#ifndef ST_KERNELS_BLOCKS_H
#define ST_KERNELS_BLOCKS_H

#include "base/dtype.h"
#include "base/size.h"

#include <stddef.h>
#include <stdint.h>

enum {
    ST_BLOCKS_CHUNK = 256, // elements of k: one block of the largest types
    ST_BLOCKS_PART = 32,   // elements of an input that share a scale
    ST_BLOCKS_PARTS = ST_BLOCKS_CHUNK / ST_BLOCKS_PART,
    ST_BLOCKS_MAX_COLUMNS = 16,
};

// 256 elements of an input, with 15 bits each: 8 bits would cost more than the weights' own
// roundings on some models, and the second half costs little where memory is the bound. Where a
// part's largest magnitude is m, element i is scale * q with scale = m / ST_BLOCKS_MAX_Q and q
// rounded half to even; q = 128 * high + low. Past the end of the input everything is 0.
enum { ST_BLOCKS_MAX_Q = 127 * 128 };
struct st_blocks_chunk {
    int8_t high[ST_BLOCKS_CHUNK]; // from -127 to 127
    int8_t low[ST_BLOCKS_CHUNK];  // from -64 to 63
    int16_t q[ST_BLOCKS_CHUNK];   // of each part the even elements, then the odd ones
    float scale[ST_BLOCKS_PARTS];
    float sum[ST_BLOCKS_PARTS];          // scale times the part's sum of q
    float half_sum[2 * ST_BLOCKS_PARTS]; // the same of 16 elements each
    // high and low again in the order of kernels that arrange codes: of blocks_arranged.h both, of
    // blocks_arranged_512.h the first. Of two or four parts in place of all eight, those again and
    // again (blocks_shared.h).
    int8_t by_blocks[2][ST_BLOCKS_CHUNK], by_pairs[2][ST_BLOCKS_CHUNK];
};

static inline size_t st_blocks_chunks(size_t k) {
    return st_ceil_div(k, ST_BLOCKS_CHUNK);
}

// y[c * y_col + r] = sum over k of w[r, k] * x[c, k]  for r in [0, n_rows), c in [0, n_columns).
// w: rows of k elements, row_bytes apart, any alignment; k is a multiple of the type's block_items.
// x: [n_columns, st_blocks_chunks(k)]; n_columns in [1, ST_BLOCKS_MAX_COLUMNS]. The sum of code * q
// over a part is exact. The order of additions of an output depends on k alone.
typedef void st_blocks_fn(const void *w, size_t row_bytes, size_t n_rows, size_t k,
                          const struct st_blocks_chunk *x, size_t n_columns, float *y,
                          size_t y_col);

// One part x[32] of an input, as in struct st_blocks_chunk: the same bits from every kernel.
// half_sum[2].
typedef void st_blocks_quantize_fn(const float *restrict x, int8_t *restrict high,
                                   int8_t *restrict low, int16_t *restrict q, float *restrict scale,
                                   float *restrict sum, float *restrict half_sum);

// Sets those of by_blocks and by_pairs that its kernels read.
typedef void st_blocks_arrange_fn(struct st_blocks_chunk *x);

struct st_blocks {
    const char *name;
    uint64_t isa;
    st_blocks_quantize_fn *quantize;
    st_blocks_arrange_fn *arrange; // NULL: its kernels read neither order
    st_blocks_fn *fn[ST_N_DTYPES]; // NULL: not a type of blocks
};

extern const struct st_blocks st_blocks_kernels[]; // best first; ends with a NULL name
const struct st_blocks *st_blocks_select(uint64_t cpu_flags);
// True for the types that have kernels, on every CPU.
bool st_blocks_has(enum st_dtype dtype);

// Quantizes chunk `chunk` of one input x[0, k); k is a multiple of ST_BLOCKS_PART. What is not
// finite in x makes its part's scale not finite.
void st_blocks_quantize(const struct st_blocks *kernel, const float *x, size_t k, size_t chunk,
                        struct st_blocks_chunk *to);

#endif

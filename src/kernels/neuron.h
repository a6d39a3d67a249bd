// SPDX-License-Identifier: Apache-2.0
// INT8 neurons one by one (PowerInfer-2, section 4.1): what a sparse feed-forward block computes
// with where only some neurons are active. Sums are exact, so a block whose other neurons are zero
// has the same sums, bit for bit, as the dense product (kernels/int8.h).
//
// A neuron as it is stored and cached, its bundle: its rows (gate and up, or up alone), k weights
// each, then its column of `down`, k weights. k is padded to a multiple of ST_NEURON_K; what
// pads x must be bytes of 0, whatever stands for zero, as rows may be padded with anything.
//
// A row or column as INT8 is k bytes; columns hold 128 more. As levels each ST_NEURON_K weights are
// 32 bytes, of which byte i holds weight i in its low half and weight 32 + i in its high one; after
// all of them comes a byte for each ST_NEURON_K weights: which of st_neuron_levels they stand for.
// Those are INT8 numbers too, so products are as exact (after NF4's idea of levels for normally
// distributed weights, Dettmers et al., QLoRA, section 3, and QServe's of 4-bit weights that
// dequantize to INT8, Lin et al., section 4.1).
#ifndef ST_KERNELS_NEURON_H
#define ST_KERNELS_NEURON_H

#include "format/neuron_layout.h"

#include <stddef.h>
#include <stdint.h>

enum {
    ST_NEURON_K = ST_NEURON_ROW,
    ST_NEURON_GROUP = 4,
    ST_NEURON_TOKENS = 4,  // whose sums are in registers together
    ST_NEURON_SCALES = 64, // a power of two: other bits of a byte that names one are left out
};

// The 16 numbers that serve a normal distribution best if the eighth is 0 (by Lloyd's iteration),
// so that the largest is 4 * (127 / 4) ^ (i / 31) in row 2 i, rounded; row 2 i + 1 has the
// negatives. Without a zero, weights that are exactly 0, which many are in pruned models, would all
// err to the same side.
extern const int8_t st_neuron_levels[ST_NEURON_SCALES][16];

typedef void st_neuron_dot_fn(const uint8_t *rows, size_t n_rows, size_t k, const uint8_t *x,
                              size_t x_row, size_t n_tokens, int32_t *sums);
typedef void st_neuron_add_fn(const uint8_t *const *columns, const int8_t *q, size_t n_tokens,
                              size_t k, int32_t *sums, size_t sum_row);

struct st_neuron_kernel {
    const char *name;
    uint64_t isa;
    uint8_t zero;  // the byte that stands for 0 in x
    uint8_t lanes; // of 16 bytes in a register: the order of the sums of `add`
    // sums[t * n_rows + r] = sum over k of x[t, k] * rows[r, k]; x holds what it holds for zero, so
    // zero * sum(row) too much. n_rows is 1 or 2, n_tokens at most ST_NEURON_TOKENS.
    st_neuron_dot_fn *dot[ST_N_NEURON_CODES];
    // Adds ST_NEURON_GROUP columns: q[t, j] * columns[j][i] to the sum of output i of token t; 128
    // * q too much. Sums of a token are sum_row apart, in an order of their own.
    st_neuron_add_fn *add[ST_N_NEURON_CODES];
};

extern const struct st_neuron_kernel st_neuron_kernels[]; // best first; ends with a NULL name
const struct st_neuron_kernel *st_neuron_select(uint64_t cpu_flags);

static inline size_t st_neuron_padded_k(size_t k) {
    return st_round_up(k, ST_NEURON_K);
}

// w: [ST_NEURON_K] = weights k to k + ST_NEURON_K - 1 of a row of `of` weights that is stored as
// levels; k a multiple.
void st_neuron_dequantize(const uint8_t *row, size_t of, size_t k, int8_t *w);

// y[i] = the sum of output i, from all of n_parts sums of k that lie `part` apart, less 128 *
// q_sum: what `add` added too much. y: [k].
void st_neuron_finish(const struct st_neuron_kernel *kernel, const int32_t *sums, size_t part,
                      size_t n_parts, size_t k, int32_t q_sum, int32_t *y);

#endif

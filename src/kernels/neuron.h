// SPDX-License-Identifier: Apache-2.0
// INT8 neurons one by one (PowerInfer-2, section 4.1): what a sparse feed-forward block computes
// with where only some neurons are active. Sums are exact, so a block whose other neurons are zero
// has the same sums, bit for bit, as the dense product (kernels/int8.h).
//
// A neuron as it is stored and cached, its bundle: its rows (gate and up, or up alone), k weights
// each, then its column of `down`, k weights plus 128 each. k is padded to a multiple of
// ST_NEURON_K, rows with zeros, columns with 128.
#ifndef ST_KERNELS_NEURON_H
#define ST_KERNELS_NEURON_H

#include "base/size.h"

#include <stddef.h>
#include <stdint.h>

enum { ST_NEURON_K = 64, ST_NEURON_GROUP = 4, ST_NEURON_TOKENS = 4 };

struct st_neuron_kernel {
    const char *name;
    uint64_t isa;
    uint8_t zero;  // the byte that stands for 0 in x
    uint8_t lanes; // of 16 bytes in a register: the order of the sums of `add`
    // sums[t * n_rows + r] = sum over k of x[t, k] * rows[r, k]; x holds what it holds for zero, so
    // zero * sum(row) too much. n_rows is 1 or 2, n_tokens at most ST_NEURON_TOKENS.
    void (*dot)(const int8_t *rows, size_t n_rows, size_t k, const uint8_t *x, size_t x_row,
                size_t n_tokens, int32_t *sums);
    // Adds ST_NEURON_GROUP columns: q[t, j] * columns[j][i] to the sum of output i of token t; 128
    // * q too much. Sums of a token are sum_row apart, in an order of their own.
    void (*add)(const uint8_t *const *columns, const int8_t *q, size_t n_tokens, size_t k,
                int32_t *sums, size_t sum_row);
};

extern const struct st_neuron_kernel st_neuron_kernels[]; // best first; ends with a NULL name
const struct st_neuron_kernel *st_neuron_choose(uint64_t cpu_flags);

static inline size_t st_neuron_padded_k(size_t k) {
    return st_round_up(k, ST_NEURON_K);
}

// y[i] = the sum of output i, from all of n_parts sums of k that lie `part` apart, less 128 *
// q_sum: what `add` added too much. y: [k].
void st_neuron_finish(const struct st_neuron_kernel *kernel, const int32_t *sums, size_t part,
                      size_t n_parts, size_t k, int32_t q_sum, int32_t *y);

#endif

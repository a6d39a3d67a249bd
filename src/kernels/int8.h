// SPDX-License-Identifier: Apache-2.0
// INT8 products for W8A8 linears (llm.npu, section 3; docs/NUMERICS.md): exact 32-bit sums, so that
// every instruction set and every device agrees bit for bit.
//
// One layout serves all of them. Weights: panels of 16 rows; in a panel, for every 4 elements of k,
// the 4 elements of row 0, those of row 1, ... row 15: 64 bytes, which is one AVX-512 register, one
// row of an AMX tile, four NEON registers. k is padded with zeros to a multiple of 64, rows to one
// of 16. Inputs: rows of k bytes, padded likewise (with anything), one token a row.
#ifndef ST_KERNELS_INT8_H
#define ST_KERNELS_INT8_H

#include "base/size.h"

#include <stddef.h>
#include <stdint.h>

enum {
    ST_INT8_PANEL = 16,      // rows of a panel
    ST_INT8_K = 64,          // k is padded to a multiple of this
    ST_INT8_MAX_K = 1 << 16, // sums of 255 x 127 stay within 32 bits
    ST_INT8_SUMS = 64 * 64,  // most sums of one tile
};

// pre: k <= ST_INT8_MAX_K
static inline size_t st_int8_padded_k(size_t k) {
    return st_round_up(k, ST_INT8_K);
}
static inline size_t st_int8_panel_bytes(size_t k) {
    return st_int8_padded_k(k) * ST_INT8_PANEL;
}

// sums[t * sum_row + 16 p + i] = sum over k of x[t, k] * w[16 p + i, k], nothing else is written.
// w: n_panels panels, one behind the other. x: n_tokens rows x_row bytes apart, what they hold for
// zero is the kernel's `zero`: an unsigned input contributes zero * sum(w) too much, which the
// caller takes away. k: padded. n_panels in [1, panels], n_tokens in [1, tokens].
typedef void st_int8_tile_fn(const int8_t *w, size_t n_panels, const uint8_t *x, size_t x_row,
                             size_t n_tokens, size_t k, int32_t *sums, size_t sum_row);

// The same of two-term inputs (kernels/elementwise.h), whose rows are q and rest in turns: both
// terms are one number, and sums[t * sum_row + 16 p + i] = (float)(sum over k of (ST_TERM_STEPS * q
// + rest)[t, k] * w[16 p + i, k]), the exact sum rounded once, what zero adds taken away. row_sums:
// [16 n_panels] of w's rows. n_inputs in [1, two_inputs].
typedef void st_int8_two_fn(const int8_t *w, const int32_t *row_sums, size_t n_panels,
                            const uint8_t *x, size_t x_row, size_t n_inputs, size_t k, float *sums,
                            size_t sum_row);

struct st_int8_kernel {
    const char *name;
    uint64_t isa;
    uint8_t zero; // the byte that stands for 0: 0 where the input is signed, 128 where unsigned
    uint8_t panels, tokens; // most of one call
    uint8_t cold_tokens;    // most of one that prefetches its weights, if they come from memory
    st_int8_tile_fn *tile;
    st_int8_two_fn *two; // where it is faster than two rows of `tile`, or NULL
    uint8_t two_inputs, two_cold_inputs;
    uint8_t two_from; // fewest inputs for which it is
};

extern const struct st_int8_kernel st_int8_kernels[]; // best first; ends with a NULL name
const struct st_int8_kernel *st_int8_select(uint64_t cpu_flags);

// Rows [0, n_rows) of w [n_rows, k], n_rows <= 16, as one panel; rows past them are zeros.
// row_sums[i] = sum over k of row i, 16 of them.
void st_int8_pack_panel(const int8_t *w, size_t n_rows, size_t k, int8_t *panel, int32_t *row_sums);

#endif

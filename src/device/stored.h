// SPDX-License-Identifier: Apache-2.0
// Linears in the form in which a checkpoint or a package stores them, for devices that compute them
// as they lie: floats, quantized blocks, nested codes. Inputs and outputs are rows of floats, or
// what the kernels for the form make of an input, as the host has it.
#ifndef ST_DEVICE_STORED_H
#define ST_DEVICE_STORED_H

#include "base/dtype.h"
#include "kernels/blocks.h"
#include "kernels/nested.h"

enum st_stored_form {
    ST_STORED_FLOATS, // F32, F16, BF16
    ST_STORED_BLOCKS, // the block types of kernels/blocks.h
    ST_STORED_NESTED, // kernels/nested.h
    ST_N_STORED_FORMS
};

struct st_stored_linear {
    enum st_stored_form form;
    uint32_t n_out, n_in;
    // Of floats and blocks: n_out rows, row_bytes apart.
    enum st_dtype dtype;
    const void *rows;
    size_t row_bytes;
    const struct st_nested_weight *nested; // else NULL
};

// Where the parts of n nested inputs lie, one after another: q, scales, sums
// (struct st_nested_input).
struct st_stored_nested {
    size_t scale, sums, bytes;
};

static inline struct st_stored_nested st_stored_nested(size_t n_in, size_t n_tokens) {
    size_t blocks = n_tokens * st_nested_blocks(n_in), q = blocks * ST_NESTED_BLOCK;
    size_t sums = q + blocks * sizeof(float);
    return (struct st_stored_nested){q, sums, sums + blocks * ST_NESTED_GROUPS * sizeof(int16_t)};
}

// Bytes of n inputs: floats [n, n_in]; chunks [n, st_blocks_chunks(n_in)]; or nested ones of
// `terms` tokens each, whose groups of four begin anew.
static inline size_t st_stored_input_bytes(enum st_stored_form form, size_t n_in, size_t n,
                                           size_t terms) {
    if (form == ST_STORED_NESTED) return st_stored_nested(n_in, n * terms).bytes;
    if (form == ST_STORED_FLOATS) return n * n_in * sizeof(float);
    return n * st_blocks_chunks(n_in) * sizeof(struct st_blocks_chunk);
}

#endif

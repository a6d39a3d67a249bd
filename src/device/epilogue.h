// SPDX-License-Identifier: Apache-2.0
// From integer sums to floats, or to the next linear's quantized input, for devices that compute
// on the host. One set of operations, so that they agree bit for bit (docs/NUMERICS.md).
#ifndef ST_DEVICE_EPILOGUE_H
#define ST_DEVICE_EPILOGUE_H

#include "device/outliers.h"
#include "device/subgraph.h"

// Where quantized rows lie: q of row t at data + t * row, in two terms its rest `rest` bytes on,
// its scale, where it has one of its own, `scale` bytes on.
struct st_quantized {
    uint8_t *data;
    size_t row, rest, scale;
    uint8_t zero; // the byte that stands for 0
    bool two_term;
};

// Quantizes x [n], from element `first` of row t on. Returns how many were clipped, which go to
// the list (NULL: they become +-127).
size_t st_quantize_row(const struct st_elementwise *elementwise, const struct st_quantized *to,
                       const float *x, size_t n, float scale, size_t t, size_t first,
                       struct st_outliers *list);

// The same for a whole row of n elements with a scale of its own, which is stored with it. Nothing
// is clipped.
void st_quantize_own_scale(const struct st_elementwise *elementwise, const struct st_quantized *to,
                           const float *x, size_t n, size_t t);

struct st_epilogue_run {
    const struct st_elementwise *elementwise;
    const struct st_linear_op *linear_op;
    uint8_t zero;  // of the input that was multiplied
    bool two_term; // each row has two sums, one behind the other
    // The rows' own scales: that of row t at scales + t * scales_row. NULL: they have none.
    const uint8_t *scales;
    size_t scales_row;
    // FLOAT; SUMS, which are int32 of the same size
    float *out[ST_LINEAR_OP_PARTS];
    size_t out_row[ST_LINEAR_OP_PARTS]; // floats
    // ACT, GATED
    struct st_quantized next;
    float next_scale;
    float *next_floats; // [rows, next_row] in place of `next`; or NULL
    size_t next_row;
    struct st_outliers *outliers; // or NULL
    const float *add;             // [.., add_row_floats], or NULL
    size_t add_row_floats;
    const int32_t *add_row; // [rows]
};

// Rows [row, row + n_rows) of the packed ones, which are in one group, for the n rows of input from
// `token` on. sums: [n, or 2 n, ST_DEVICE_GROUP]. Returns how many elements were clipped.
size_t st_epilogue(const struct st_epilogue_run *run, size_t row, size_t n_rows, size_t token,
                   size_t n, const int32_t *sums);

// The same of both terms' sums as one (struct st_int8_kernel's `two`), [n, ST_DEVICE_GROUP]. They
// cannot go out as SUMS.
size_t st_epilogue_joint(const struct st_epilogue_run *run, size_t row, size_t n_rows, size_t token,
                         size_t n, const float *sums);

#endif

// SPDX-License-Identifier: Apache-2.0
// Element types of stored tensors: one row each. Layouts of the block types are in docs/FORMAT.md.
#ifndef ST_BASE_DTYPE_H
#define ST_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// id, name, items per block, bytes per block, GGUF type number, safetensors name or NULL
#define ST_DTYPE_LIST(X)                                                                           \
    X(F32, "f32", 1, 4, 0, "F32")                                                                  \
    X(F16, "f16", 1, 2, 1, "F16")                                                                  \
    X(BF16, "bf16", 1, 2, 30, "BF16")                                                              \
    X(Q4_0, "q4_0", 32, 18, 2, NULL)                                                               \
    X(Q4_1, "q4_1", 32, 20, 3, NULL)                                                               \
    X(Q5_0, "q5_0", 32, 22, 6, NULL)                                                               \
    X(Q5_1, "q5_1", 32, 24, 7, NULL)                                                               \
    X(Q8_0, "q8_0", 32, 34, 8, NULL)                                                               \
    X(Q2_K, "q2_k", 256, 84, 10, NULL)                                                             \
    X(Q3_K, "q3_k", 256, 110, 11, NULL)                                                            \
    X(Q4_K, "q4_k", 256, 144, 12, NULL)                                                            \
    X(Q5_K, "q5_k", 256, 176, 13, NULL)                                                            \
    X(Q6_K, "q6_k", 256, 210, 14, NULL)                                                            \
    X(IQ4_NL, "iq4_nl", 32, 18, 20, NULL)                                                          \
    X(IQ4_XS, "iq4_xs", 256, 136, 23, NULL)                                                        \
    X(TQ1_0, "tq1_0", 256, 54, 34, NULL)                                                           \
    X(TQ2_0, "tq2_0", 256, 66, 35, NULL)                                                           \
    X(MXFP4, "mxfp4", 32, 17, 39, NULL)

enum st_dtype {
#define X(id, ...) ST_DTYPE_##id,
    ST_DTYPE_LIST(X)
#undef X
        ST_N_DTYPES
};

// The columns of the list as constants: ST_Q4_K_ITEMS elements of a block, in ST_Q4_K_BYTES.
enum {
#define X(id, name, items, bytes, ...) ST_##id##_ITEMS = items, ST_##id##_BYTES = bytes,
    ST_DTYPE_LIST(X)
#undef X
};

struct st_dtype_traits {
    const char *name;
    uint32_t block_items; // elements per block; rows are whole blocks
    uint32_t block_bytes;
    uint32_t gguf_type;
    const char *safetensors_name; // NULL: not in safetensors
};

// pre: dtype < ST_N_DTYPES
const struct st_dtype_traits *st_dtype_traits(enum st_dtype dtype);

// Bytes of a row of n elements; pre: n is a multiple of block_items and the product fits.
size_t st_dtype_row_bytes(enum st_dtype dtype, size_t n);

// False if no such type is known.
bool st_dtype_from_gguf(uint32_t gguf_type, enum st_dtype *out);
bool st_dtype_from_safetensors(const char *name, enum st_dtype *out);

#endif

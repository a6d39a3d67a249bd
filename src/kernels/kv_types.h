// SPDX-License-Identifier: Apache-2.0
// The number types of the KV cache, one row each: options, help texts, memory plans and saved
// sequences follow from it. How a type's rows are written and read is in kv_codecs.h.
#ifndef ST_KERNELS_KV_TYPES_H
#define ST_KERNELS_KV_TYPES_H

#include <stdbool.h>
#include <stddef.h>

// X(id, name, bits of a value, bytes of a block's scale, whether keys are mixed and stored without
// their biases). The name is that of --kv and of stint_session_options.
#define ST_KV_TYPES(X)                                                                             \
    X(F32, f32, 32, 0, false)                                                                      \
    X(F16, f16, 16, 0, false)                                                                      \
    X(Q8, q8, 8, 2, true)

#define ST_KV_ID(id, name, bits, scale, mixed) ST_KV_##id,
enum st_kv_type { ST_KV_TYPES(ST_KV_ID) ST_N_KV_TYPES };
#undef ST_KV_ID

enum { ST_KV_BLOCK = 32 }; // values that share a scale

struct st_kv_traits {
    const char *name;
    size_t value_bits, scale_bytes;
    bool mixed_keys;
};
extern const struct st_kv_traits st_kv_traits[ST_N_KV_TYPES];

// A row of the cache, which is one head's key or value of one token: its values, then the scales of
// its blocks.
static inline size_t st_kv_row_bytes(enum st_kv_type type, size_t head_dim) {
    const struct st_kv_traits *traits = &st_kv_traits[type];
    size_t blocks = (head_dim + ST_KV_BLOCK - 1) / ST_KV_BLOCK;
    return (head_dim * traits->value_bits + 7) / 8 + blocks * traits->scale_bytes;
}

// Spreads what is in few values of x over many: a Walsh-Hadamard transform of each run of 2^m
// values, for the largest 2^m that divides n, without a factor; twice gives 2^m x. Some models'
// keys have a few values a hundred times as large as the others (the biases of Qwen2), which would
// set the scale of all in their block. Keys stored mixed and divided by st_kv_mix_length(n), and
// queries mixed, give the products of the unmixed ones.
void st_kv_mix(float *x, size_t n);
static inline size_t st_kv_mix_length(size_t n) {
    return n & (~n + 1);
}

// All names, "f32|f16|...".
const char *st_kv_names(void);

#endif

// SPDX-License-Identifier: Apache-2.0
// The table, from the one list in the header, and look-ups in it.
#include "base/dtype.h"

#include <string.h>

static const struct st_dtype_traits traits[ST_N_DTYPES] = {
#define X(id, name, items, bytes, gguf, safetensors)                                               \
    [ST_DTYPE_##id] = {name, items, bytes, gguf, safetensors},
    ST_DTYPE_LIST(X)
#undef X
};

const struct st_dtype_traits *st_dtype_traits(enum st_dtype dtype) {
    return &traits[dtype];
}

size_t st_dtype_row_bytes(enum st_dtype dtype, size_t n) {
    return n / traits[dtype].block_items * traits[dtype].block_bytes;
}

bool st_dtype_from_gguf(uint32_t gguf_type, enum st_dtype *out) {
    for (int i = 0; i < ST_N_DTYPES; i++)
        if (traits[i].gguf_type == gguf_type) {
            *out = (enum st_dtype)i;
            return true;
        }
    return false;
}

bool st_dtype_from_safetensors(const char *name, enum st_dtype *out) {
    for (int i = 0; i < ST_N_DTYPES; i++)
        if (traits[i].safetensors_name && strcmp(traits[i].safetensors_name, name) == 0) {
            *out = (enum st_dtype)i;
            return true;
        }
    return false;
}

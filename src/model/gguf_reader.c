// SPDX-License-Identifier: Apache-2.0
#include "model/gguf_reader.h"

#include <stdio.h>

struct st_reader_key st_reader_key(const struct st_gguf_reader *r, const char *key) {
    struct st_reader_key k;
    snprintf(k.text, sizeof k.text, "%s.%s", r->prefix, key);
    return k;
}

stint_status st_reader_size(const struct st_gguf_reader *r, const char *key, uint32_t *out) {
    uint64_t value = *out;
    ST_TRY(st_gguf_u64(r->gguf, st_reader_key(r, key).text, INT32_MAX, &value));
    *out = (uint32_t)value;
    return STINT_OK;
}

stint_status st_reader_number(const struct st_gguf_reader *r, const char *key, double *out) {
    return st_gguf_f64(r->gguf, st_reader_key(r, key).text, out);
}

stint_status st_reader_sizes(const struct st_gguf_reader *r, const char *key, uint32_t n,
                             uint32_t *out) {
    struct st_reader_key k = st_reader_key(r, key);
    struct st_gguf_array array = {.type = ST_GGUF_N_TYPES};
    if (st_gguf_array(r->gguf, k.text, ST_GGUF_I32, &array) != STINT_OK &&
        st_gguf_array(r->gguf, k.text, ST_GGUF_U32, &array) != STINT_OK) {
        uint32_t one = n ? out[0] : 0;
        ST_TRY(st_reader_size(r, key, &one));
        for (uint32_t i = 0; i < n; i++) out[i] = one;
        return STINT_OK;
    }
    if (array.type == ST_GGUF_N_TYPES) return STINT_OK;
    if (array.count != n)
        return st_fail(STINT_E_FORMAT, "'%s' has %llu entries for %u layers", k.text,
                       (unsigned long long)array.count, n);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t value = st_gguf_array_u64(&array, i);
        if (value > INT32_MAX) return st_fail(STINT_E_FORMAT, "'%s' is out of range", k.text);
        out[i] = (uint32_t)value;
    }
    return STINT_OK;
}

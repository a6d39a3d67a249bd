// SPDX-License-Identifier: Apache-2.0
// Metadata of a GGUF file: entries sorted by key, found by bisection. Values stay in the mapped
// file; gguf.c has checked that each lies inside it. The file is little-endian, as are the machines
// stint runs on, so numbers are copied out as they are.
#include "format/gguf_kv.h"

#include "base/size.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct st_gguf_type_traits types[ST_GGUF_N_TYPES] = {
    [ST_GGUF_U8] = {"u8", 1, ST_GGUF_UNSIGNED},      [ST_GGUF_I8] = {"i8", 1, ST_GGUF_SIGNED},
    [ST_GGUF_U16] = {"u16", 2, ST_GGUF_UNSIGNED},    [ST_GGUF_I16] = {"i16", 2, ST_GGUF_SIGNED},
    [ST_GGUF_U32] = {"u32", 4, ST_GGUF_UNSIGNED},    [ST_GGUF_I32] = {"i32", 4, ST_GGUF_SIGNED},
    [ST_GGUF_F32] = {"f32", 4, ST_GGUF_FLOAT},       [ST_GGUF_BOOL] = {"bool", 1, ST_GGUF_OTHER},
    [ST_GGUF_STRING] = {"string", 0, ST_GGUF_OTHER}, [ST_GGUF_ARRAY] = {"array", 0, ST_GGUF_OTHER},
    [ST_GGUF_U64] = {"u64", 8, ST_GGUF_UNSIGNED},    [ST_GGUF_I64] = {"i64", 8, ST_GGUF_SIGNED},
    [ST_GGUF_F64] = {"f64", 8, ST_GGUF_FLOAT},
};

const struct st_gguf_type_traits *st_gguf_type_traits(enum st_gguf_type type) {
    return &types[type];
}

static int compare_keys(struct st_gguf_string a, struct st_gguf_string b) {
    int order = memcmp(a.data, b.data, st_min(a.bytes, b.bytes));
    return order ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

static int by_key(const void *a, const void *b) {
    return compare_keys(((const struct st_gguf_entry *)a)->key,
                        ((const struct st_gguf_entry *)b)->key);
}

// Grows by doubling rather than by what the file claims to hold.
stint_status st_gguf_kv_add(struct st_gguf *gguf, const struct st_gguf_entry *entry) {
    if (gguf->count == gguf->capacity) {
        size_t capacity = gguf->capacity ? 2 * gguf->capacity : 32, bytes = 0;
        struct st_gguf_entry *grown = NULL;
        if (st_size_mul(capacity, sizeof *grown, &bytes)) grown = realloc(gguf->entries, bytes);
        if (!grown) return st_fail(STINT_E_NOMEM, "no memory for %zu metadata keys", capacity);
        gguf->entries = grown;
        gguf->capacity = capacity;
    }
    gguf->entries[gguf->count++] = *entry;
    return STINT_OK;
}

stint_status st_gguf_kv_sort(struct st_gguf *gguf) {
    if (gguf->count > 1) qsort(gguf->entries, gguf->count, sizeof *gguf->entries, by_key);
    for (size_t i = 1; i < gguf->count; i++) {
        struct st_gguf_string key = gguf->entries[i].key;
        if (compare_keys(gguf->entries[i - 1].key, key) == 0)
            return st_fail(STINT_E_FORMAT, "metadata '%.*s': the key is there twice",
                           (int)st_min(key.bytes, 99), key.data);
    }
    return STINT_OK;
}

const struct st_gguf_entry *st_gguf_kv_find(const struct st_gguf *gguf, const char *key) {
    struct st_gguf_entry wanted = {.key = {key, strlen(key)}};
    if (gguf->count == 0) return NULL;
    return bsearch(&wanted, gguf->entries, gguf->count, sizeof wanted, by_key);
}

void st_gguf_close(struct st_gguf *gguf) {
    if (!gguf) return;
    free(gguf->entries);
    free(gguf);
}

bool st_gguf_has(const struct st_gguf *gguf, const char *key) {
    return st_gguf_kv_find(gguf, key) != NULL;
}

static stint_status wrong_type(const struct st_gguf_entry *entry, const char *key,
                               const char *expected) {
    return st_fail(STINT_E_FORMAT, "metadata '%.99s': is of type %s, expected %s", key,
                   types[entry->type].name, expected);
}

// Sign-extended; pre: an integer type or bool.
static uint64_t load_integer(enum st_gguf_type type, const unsigned char *at) {
    uint64_t value = 0, sign = (uint64_t)1 << (8 * types[type].bytes - 1);
    memcpy(&value, at, types[type].bytes);
    return types[type].kind == ST_GGUF_SIGNED ? (value ^ sign) - sign : value;
}

static double load_float(enum st_gguf_type type, const unsigned char *at) {
    float single;
    double value;
    if (type == ST_GGUF_F64) {
        memcpy(&value, at, sizeof value);
        return value;
    }
    memcpy(&single, at, sizeof single);
    return (double)single;
}

stint_status st_gguf_u64(const struct st_gguf *gguf, const char *key, uint64_t max, uint64_t *out) {
    const struct st_gguf_entry *entry = st_gguf_kv_find(gguf, key);
    if (!entry) return STINT_OK;
    enum st_gguf_kind kind = types[entry->type].kind;
    if (kind != ST_GGUF_UNSIGNED && kind != ST_GGUF_SIGNED)
        return wrong_type(entry, key, "an integer");
    uint64_t value = load_integer(entry->type, entry->data);
    if (kind == ST_GGUF_SIGNED && value >> 63)
        return st_fail(STINT_E_FORMAT, "metadata '%.99s': %lld is negative", key, (long long)value);
    if (value > max)
        return st_fail(STINT_E_FORMAT, "metadata '%.99s': %llu, at most %llu is allowed", key,
                       (unsigned long long)value, (unsigned long long)max);
    *out = value;
    return STINT_OK;
}

stint_status st_gguf_f64(const struct st_gguf *gguf, const char *key, double *out) {
    const struct st_gguf_entry *entry = st_gguf_kv_find(gguf, key);
    if (!entry) return STINT_OK;
    if (types[entry->type].kind != ST_GGUF_FLOAT) return wrong_type(entry, key, "f32 or f64");
    double value = load_float(entry->type, entry->data);
    if (!isfinite(value))
        return st_fail(STINT_E_FORMAT, "metadata '%.99s': %g is not a finite number", key, value);
    *out = value;
    return STINT_OK;
}

stint_status st_gguf_bool(const struct st_gguf *gguf, const char *key, bool *out) {
    const struct st_gguf_entry *entry = st_gguf_kv_find(gguf, key);
    if (!entry) return STINT_OK;
    if (entry->type != ST_GGUF_BOOL) return wrong_type(entry, key, "bool");
    *out = *entry->data != 0;
    return STINT_OK;
}

stint_status st_gguf_str(const struct st_gguf *gguf, const char *key, struct st_gguf_string *out) {
    const struct st_gguf_entry *entry = st_gguf_kv_find(gguf, key);
    if (!entry) return STINT_OK;
    if (entry->type != ST_GGUF_STRING) return wrong_type(entry, key, "string");
    *out = (struct st_gguf_string){(const char *)entry->data, (size_t)entry->count};
    return STINT_OK;
}

stint_status st_gguf_array(const struct st_gguf *gguf, const char *key, enum st_gguf_type type,
                           struct st_gguf_array *out) {
    const struct st_gguf_entry *entry = st_gguf_kv_find(gguf, key);
    if (!entry) return STINT_OK;
    if (entry->type != ST_GGUF_ARRAY) return wrong_type(entry, key, "an array");
    if (entry->element != type)
        return st_fail(STINT_E_FORMAT, "metadata '%.99s': is an array of %s, expected %s", key,
                       types[entry->element].name, types[type].name);
    *out = (struct st_gguf_array){type, entry->count, entry->data};
    return STINT_OK;
}

uint64_t st_gguf_array_u64(const struct st_gguf_array *array, uint64_t i) {
    return load_integer(array->type, array->data + i * types[array->type].bytes);
}

float st_gguf_array_f32(const struct st_gguf_array *array, uint64_t i) {
    return (float)load_float(array->type, array->data + i * types[array->type].bytes);
}

struct st_gguf_string st_gguf_next_string(const unsigned char **cursor) {
    uint64_t bytes;
    memcpy(&bytes, *cursor, sizeof bytes);
    struct st_gguf_string string = {(const char *)*cursor + sizeof bytes, (size_t)bytes};
    *cursor += sizeof bytes + bytes;
    return string;
}

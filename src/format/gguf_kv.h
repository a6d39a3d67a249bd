// SPDX-License-Identifier: Apache-2.0
// The metadata of a GGUF file as gguf.c fills it and gguf_kv.c looks it up. Private to these two.
#ifndef ST_FORMAT_GGUF_KV_H
#define ST_FORMAT_GGUF_KV_H

#include "format/gguf.h"

enum st_gguf_kind { ST_GGUF_UNSIGNED, ST_GGUF_SIGNED, ST_GGUF_FLOAT, ST_GGUF_OTHER };

struct st_gguf_type_traits {
    const char *name;
    uint32_t bytes; // of one value; 0 where it varies
    enum st_gguf_kind kind;
};

// pre: type < ST_GGUF_N_TYPES
const struct st_gguf_type_traits *st_gguf_type_traits(enum st_gguf_type type);

struct st_gguf_entry {
    struct st_gguf_string key;
    const unsigned char *data; // the value; a string's or an array's first byte
    uint64_t count;            // bytes of a string, elements of an array, else 1
    enum st_gguf_type type, element;
};

struct st_gguf {
    struct st_gguf_entry *entries; // sorted by key once st_gguf_kv_sort has run
    size_t count, capacity;
    const unsigned char *bytes; // of all entries, as they lie in the file
    size_t n_bytes;
};

stint_status st_gguf_kv_add(struct st_gguf *gguf, const struct st_gguf_entry *entry);
// After the last addition. Two equal keys: STINT_E_FORMAT.
stint_status st_gguf_kv_sort(struct st_gguf *gguf);
// NULL if absent.
const struct st_gguf_entry *st_gguf_kv_find(const struct st_gguf *gguf, const char *key);

#endif

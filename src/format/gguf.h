// SPDX-License-Identifier: Apache-2.0
// GGUF v2 and v3, little-endian: typed metadata and tensors, as views into a mapped file.
#ifndef ST_FORMAT_GGUF_H
#define ST_FORMAT_GGUF_H

#include "base/map.h"
#include "format/tensors.h"

struct st_gguf;

enum st_gguf_type {
    ST_GGUF_U8,
    ST_GGUF_I8,
    ST_GGUF_U16,
    ST_GGUF_I16,
    ST_GGUF_U32,
    ST_GGUF_I32,
    ST_GGUF_F32,
    ST_GGUF_BOOL,
    ST_GGUF_STRING,
    ST_GGUF_ARRAY,
    ST_GGUF_U64,
    ST_GGUF_I64,
    ST_GGUF_F64,
    ST_GGUF_N_TYPES
};

// Bytes in the file: no terminator.
struct st_gguf_string {
    const char *data;
    size_t bytes;
};

struct st_gguf_array {
    enum st_gguf_type type; // never ARRAY: nested arrays are refused
    uint64_t count;
    const unsigned char *data; // unaligned; strings are u64 length + bytes one after the other
};

// Checks the whole header: every length, count, offset, type and alignment. Borrows `map` until
// close. `name` stands in error texts. The tensors are added to `tensors`, which may be NULL
// (vocabulary only).
stint_status st_gguf_open(const char *name, const struct st_map *map, struct st_tensors *tensors,
                          struct st_gguf **gguf);
void st_gguf_close(struct st_gguf *gguf); // accepts NULL

// The metadata alone, as a GGUF file without tensors; free() it. STINT_E_NOMEM.
stint_status st_gguf_metadata(const struct st_gguf *gguf, void **data, size_t *bytes);

// Metadata. Absent: *out keeps the default that it holds and the call succeeds. Wrong type or out
// of range: STINT_E_FORMAT naming the key. Integers of every width and sign are taken if the value
// fits.
bool st_gguf_has(const struct st_gguf *gguf, const char *key);
stint_status st_gguf_u64(const struct st_gguf *gguf, const char *key, uint64_t max, uint64_t *out);
stint_status st_gguf_f64(const struct st_gguf *gguf, const char *key,
                         double *out); // F32 and F64; NaN, inf refused
stint_status st_gguf_bool(const struct st_gguf *gguf, const char *key, bool *out);
stint_status st_gguf_str(const struct st_gguf *gguf, const char *key, struct st_gguf_string *out);
// The element type must be `type`.
stint_status st_gguf_array(const struct st_gguf *gguf, const char *key, enum st_gguf_type type,
                           struct st_gguf_array *out);

// Element i of a numeric array; pre: i < count.
uint64_t st_gguf_array_u64(const struct st_gguf_array *array,
                           uint64_t i); // integer and bool arrays, as two's complement
float st_gguf_array_f32(const struct st_gguf_array *array, uint64_t i);
// Walks a string array: *cursor starts as array->data and moves on by one string.
struct st_gguf_string st_gguf_next_string(const unsigned char **cursor);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "support/gguf_builder.h"

#include <stdlib.h>
#include <string.h>

static void reserve(struct ts_gguf *file, size_t bytes) {
    if (file->n + bytes <= file->capacity) return;
    file->capacity = 2 * (file->n + bytes);
    file->data = realloc(file->data, file->capacity);
    if (!file->data) abort();
}

void ts_gguf_bytes(struct ts_gguf *file, const void *data, size_t bytes) {
    if (bytes == 0) return;
    reserve(file, bytes);
    memcpy(file->data + file->n, data, bytes);
    file->n += bytes;
}

void ts_gguf_u32(struct ts_gguf *file, uint32_t value) {
    ts_gguf_bytes(file, &value, sizeof value);
}

void ts_gguf_u64(struct ts_gguf *file, uint64_t value) {
    ts_gguf_bytes(file, &value, sizeof value);
}

void ts_gguf_text(struct ts_gguf *file, const char *text) {
    ts_gguf_u64(file, strlen(text));
    ts_gguf_bytes(file, text, strlen(text));
}

void ts_gguf_header(struct ts_gguf *file, uint32_t version, uint64_t n_tensors, uint64_t n_keys) {
    ts_gguf_bytes(file, "GGUF", 4);
    ts_gguf_u32(file, version);
    ts_gguf_u64(file, n_tensors);
    ts_gguf_u64(file, n_keys);
}

void ts_gguf_key(struct ts_gguf *file, const char *key, uint32_t type) {
    ts_gguf_text(file, key);
    ts_gguf_u32(file, type);
}

void ts_gguf_key_u32(struct ts_gguf *file, const char *key, uint32_t value) {
    ts_gguf_key(file, key, ST_GGUF_U32);
    ts_gguf_u32(file, value);
}

void ts_gguf_key_f32(struct ts_gguf *file, const char *key, float value) {
    ts_gguf_key(file, key, ST_GGUF_F32);
    ts_gguf_bytes(file, &value, sizeof value);
}

void ts_gguf_key_text(struct ts_gguf *file, const char *key, const char *value) {
    ts_gguf_key(file, key, ST_GGUF_STRING);
    ts_gguf_text(file, value);
}

void ts_gguf_key_array(struct ts_gguf *file, const char *key, uint32_t type, uint64_t count) {
    ts_gguf_key(file, key, ST_GGUF_ARRAY);
    ts_gguf_u32(file, type);
    ts_gguf_u64(file, count);
}

void ts_gguf_tensor(struct ts_gguf *file, const char *name, uint32_t n_dims, const uint64_t *dims,
                    uint32_t type, uint64_t offset) {
    ts_gguf_text(file, name);
    ts_gguf_u32(file, n_dims);
    ts_gguf_bytes(file, dims, n_dims * sizeof *dims);
    ts_gguf_u32(file, type);
    ts_gguf_u64(file, offset);
}

void ts_gguf_zeros(struct ts_gguf *file, size_t bytes) {
    if (bytes == 0) return;
    reserve(file, bytes);
    memset(file->data + file->n, 0, bytes);
    file->n += bytes;
}

void ts_gguf_pad(struct ts_gguf *file, size_t alignment) {
    ts_gguf_zeros(file, (alignment - file->n % alignment) % alignment);
}

struct st_map ts_exact_map(const void *data, size_t bytes) {
    unsigned char *copy = NULL;
    if (bytes > 0) {
        copy = malloc(bytes);
        if (!copy) abort();
        memcpy(copy, data, bytes);
    }
    return (struct st_map){copy, bytes};
}

void ts_gguf_free(struct ts_gguf *file) {
    free(file->data);
    *file = (struct ts_gguf){0};
}

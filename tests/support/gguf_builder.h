// SPDX-License-Identifier: Apache-2.0
// Builds GGUF files byte by byte, right or wrong ones: nothing here checks what it is told to
// write. Zero-initialise; free with ts_gguf_free.
#ifndef TESTS_SUPPORT_GGUF_BUILDER_H
#define TESTS_SUPPORT_GGUF_BUILDER_H

#include "base/map.h"
#include "format/gguf.h"

struct ts_gguf {
    unsigned char *data;
    size_t n, capacity;
};

void ts_gguf_bytes(struct ts_gguf *file, const void *data, size_t bytes);
void ts_gguf_u32(struct ts_gguf *file, uint32_t value);
void ts_gguf_u64(struct ts_gguf *file, uint64_t value);
void ts_gguf_text(struct ts_gguf *file, const char *text); // u64 length + bytes

// Magic, version and the two counts.
void ts_gguf_header(struct ts_gguf *file, uint32_t version, uint64_t n_tensors, uint64_t n_keys);

// Key and type; the value follows with the calls above.
void ts_gguf_key(struct ts_gguf *file, const char *key, uint32_t type);
void ts_gguf_key_u32(struct ts_gguf *file, const char *key, uint32_t value);
void ts_gguf_key_f32(struct ts_gguf *file, const char *key, float value);
void ts_gguf_key_text(struct ts_gguf *file, const char *key, const char *value);
// Key, type and the array's head; the elements follow.
void ts_gguf_key_array(struct ts_gguf *file, const char *key, uint32_t type, uint64_t count);

// A tensor's description; `dims` as in the file, innermost first.
void ts_gguf_tensor(struct ts_gguf *file, const char *name, uint32_t n_dims, const uint64_t *dims,
                    uint32_t type, uint64_t offset);

void ts_gguf_zeros(struct ts_gguf *file, size_t bytes);
void ts_gguf_pad(struct ts_gguf *file, size_t alignment);

// The first `bytes` in a block of exactly that size, so that ASan sees a read past its end. Borrows
// nothing; free() map.data.
struct st_map ts_exact_map(const void *data, size_t bytes);

void ts_gguf_free(struct ts_gguf *file);

#endif

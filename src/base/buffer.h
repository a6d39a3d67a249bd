// SPDX-License-Identifier: Apache-2.0
// Growing arrays of bytes and of token ids. Zero-initialise and free them; a failed growth leaves
// them unchanged.
#ifndef ST_BASE_BUFFER_H
#define ST_BASE_BUFFER_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct st_bytes {
    char *data;
    size_t count, capacity;
};

stint_status st_bytes_append(struct st_bytes *bytes, const void *data, size_t n);
void st_bytes_free(struct st_bytes *bytes);

struct st_ids {
    int32_t *data;
    size_t count, capacity;
};

stint_status st_ids_append(struct st_ids *ids, int32_t id);
void st_ids_free(struct st_ids *ids);

// Makes room for `n` more items of `item_bytes` in a doubling array. pre: *data is NULL or came
// from this function.
stint_status st_grow(void **data, size_t *capacity, size_t count, size_t n, size_t item_bytes);

#endif

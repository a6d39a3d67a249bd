// SPDX-License-Identifier: Apache-2.0
#include "base/buffer.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

stint_status st_grow(void **data, size_t *capacity, size_t count, size_t n, size_t item_bytes) {
    size_t needed, bytes;
    if (!st_size_add(count, n, &needed)) return st_fail(STINT_E_NOMEM, "text is too long");
    if (needed <= *capacity && *data) return STINT_OK;
    needed = st_max(st_max(needed, 64), *capacity <= SIZE_MAX / 2 ? *capacity * 2 : needed);
    if (!st_size_mul(needed, item_bytes, &bytes)) return st_fail(STINT_E_NOMEM, "text is too long");
    void *grown = realloc(*data, bytes);
    if (!grown) return st_fail(STINT_E_NOMEM, "no memory for %zu bytes of text", bytes);
    *data = grown;
    *capacity = needed;
    return STINT_OK;
}

stint_status st_bytes_append(struct st_bytes *bytes, const void *data, size_t n) {
    ST_TRY(st_grow((void **)&bytes->data, &bytes->capacity, bytes->count, n, 1));
    if (n) memcpy(bytes->data + bytes->count, data, n);
    bytes->count += n;
    return STINT_OK;
}

void st_bytes_free(struct st_bytes *bytes) {
    free(bytes->data);
    *bytes = (struct st_bytes){0};
}

stint_status st_ids_append(struct st_ids *ids, int32_t id) {
    ST_TRY(st_grow((void **)&ids->data, &ids->capacity, ids->count, 1, sizeof *ids->data));
    ids->data[ids->count++] = id;
    return STINT_OK;
}

void st_ids_free(struct st_ids *ids) {
    free(ids->data);
    *ids = (struct st_ids){0};
}

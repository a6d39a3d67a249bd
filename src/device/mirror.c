// SPDX-License-Identifier: Apache-2.0
#include "device/mirror.h"

#include <string.h>

stint_status st_mirror_open(struct st_device *device, void *host, size_t bytes,
                            struct st_mirror *mirror) {
    struct st_mirror m = {.host = host, .bytes = bytes};
    m.shared = st_device_caps(device)->host_memory;
    if (m.shared)
        ST_TRY(st_buffer_import(device, host, bytes, &m.buffer));
    else
        ST_TRY(st_buffer_allocate(device, bytes, &m.buffer));
    *mirror = m;
    return STINT_OK;
}

void st_mirror_close(struct st_mirror *mirror) {
    st_buffer_free(mirror->buffer);
    *mirror = (struct st_mirror){0};
}

static size_t offset_of(const struct st_mirror *m, const void *data) {
    return (size_t)((const unsigned char *)data - m->host);
}

struct st_slice st_mirror_slice(const struct st_mirror *mirror, const void *data,
                                size_t row_bytes) {
    if (!data) return (struct st_slice){0};
    return (struct st_slice){mirror->buffer, offset_of(mirror, data), row_bytes};
}

stint_status st_mirror_push(const struct st_mirror *mirror, const void *data, size_t bytes) {
    struct st_mapping map;
    if (mirror->shared) return STINT_OK;
    ST_TRY(st_buffer_map(mirror->buffer, offset_of(mirror, data), bytes, ST_MAP_WRITE, &map));
    memcpy(map.data, data, bytes);
    return st_buffer_unmap(&map);
}

stint_status st_mirror_pull(const struct st_mirror *mirror, void *data, size_t bytes) {
    struct st_mapping map;
    if (mirror->shared) return STINT_OK;
    ST_TRY(st_buffer_map(mirror->buffer, offset_of(mirror, data), bytes, ST_MAP_READ, &map));
    memcpy(data, map.data, bytes);
    return st_buffer_unmap(&map);
}

stint_status st_mirror_pull_outliers(const struct st_mirror *mirror, struct st_outliers *list) {
    ST_TRY(st_mirror_pull(mirror, list, sizeof *list));
    size_t n = st_min(list->count, list->capacity);
    return n ? st_mirror_pull(mirror, list->entries, n * sizeof *list->entries) : STINT_OK;
}

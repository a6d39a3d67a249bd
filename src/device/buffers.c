// SPDX-License-Identifier: Apache-2.0
// Buffers: what is the same on every device.
#include "device/driver.h"

static stint_status adopt(struct st_device *device, size_t bytes, bool imported,
                          struct st_buffer *b, struct st_buffer **buffer) {
    b->device = device;
    b->bytes = bytes;
    b->imported = imported;
    *buffer = b;
    return STINT_OK;
}

stint_status st_buffer_allocate(struct st_device *device, size_t bytes, struct st_buffer **buffer) {
    struct st_buffer *b = NULL;
    ST_TRY(st_device_check(device));
    ST_TRY(st_device_count(device, bytes, "buffers"));
    stint_status status = device->ops->allocate(device, bytes, &b);
    if (status == STINT_OK) return adopt(device, bytes, false, b, buffer);
    st_device_uncount(device, bytes);
    return status;
}

stint_status st_buffer_import(struct st_device *device, void *data, size_t bytes,
                              struct st_buffer **buffer) {
    struct st_buffer *b = NULL;
    ST_TRY(st_device_check(device));
    if (!device->caps.host_memory)
        return st_fail(STINT_E_UNSUPPORTED, "device '%s': it imports no host memory",
                       device->ops->name);
    ST_TRY(device->ops->import(device, data, &b));
    return adopt(device, bytes, true, b, buffer);
}

stint_status st_buffer_borrow(struct st_device *device, void *data, size_t bytes,
                              struct st_buffer **buffer) {
    struct st_buffer *b = NULL;
    bool in_place = device->caps.reads_host;
    ST_TRY(st_device_check(device));
    if (!device->ops->borrow)
        return st_fail(STINT_E_UNSUPPORTED, "device '%s': it borrows no host memory",
                       device->ops->name);
    ST_TRY(st_device_count(device, in_place ? 0 : bytes, "buffers"));
    stint_status status = device->ops->borrow(device, data, bytes, &b);
    if (status == STINT_OK) return adopt(device, bytes, in_place, b, buffer);
    st_device_uncount(device, in_place ? 0 : bytes);
    return status;
}

void st_buffer_rebind(struct st_buffer *buffer, void *data, size_t bytes) {
    if (!buffer->imported) return;
    (void)buffer->device->ops->import(buffer->device, data, &buffer);
    buffer->bytes = bytes;
}

void st_buffer_free(struct st_buffer *buffer) {
    if (!buffer) return;
    if (!buffer->imported) st_device_uncount(buffer->device, buffer->bytes);
    buffer->device->ops->free_buffer(buffer);
}

size_t st_buffer_bytes(const struct st_buffer *buffer) {
    return buffer->bytes;
}

stint_status st_buffer_map(struct st_buffer *buffer, size_t offset, size_t bytes, unsigned how,
                           struct st_mapping *map) {
    if (offset > buffer->bytes || bytes > buffer->bytes - offset)
        return st_fail(STINT_E_INTERNAL, "device '%s': %zu bytes at %zu of a buffer of %zu",
                       buffer->device->ops->name, bytes, offset, buffer->bytes);
    ST_TRY(st_device_check(buffer->device));
    struct st_mapping m = {buffer, offset, bytes, how, NULL};
    ST_TRY(buffer->device->ops->map(&m));
    *map = m;
    return STINT_OK;
}

stint_status st_buffer_unmap(struct st_mapping *map) {
    stint_status status = map->buffer->device->ops->unmap(map);
    *map = (struct st_mapping){0};
    return status;
}

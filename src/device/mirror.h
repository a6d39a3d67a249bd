// SPDX-License-Identifier: Apache-2.0
// A block of host memory that a device sees: the same memory where the device can import it, a
// buffer of the same size beside it where it cannot. The host computes on its block as always, says
// what it has written before a job reads it (push), and what it wants to read of what a job wrote
// (pull). Both do nothing where the memory is shared.
#ifndef ST_DEVICE_MIRROR_H
#define ST_DEVICE_MIRROR_H

#include "device/device.h"

struct st_mirror {
    struct st_buffer *buffer;
    unsigned char *host;
    size_t bytes;
    bool shared;
};

// *Borrows* the block until close; ST_DEVICE_ALIGNMENT. STINT_E_NOMEM, E_LIMIT, E_DEVICE.
stint_status st_mirror_open(struct st_device *device, void *host, size_t bytes,
                            struct st_mirror *mirror);
void st_mirror_close(struct st_mirror *mirror); // accepts a zeroed one

// The argument that stands for what lies at `data`, inside the block.
struct st_slice st_mirror_slice(const struct st_mirror *mirror, const void *data, size_t row_bytes);
stint_status st_mirror_push(const struct st_mirror *mirror, const void *data, size_t bytes);
stint_status st_mirror_pull(const struct st_mirror *mirror, void *data, size_t bytes);
// Pulls a list of outliers: as much of it as there is.
stint_status st_mirror_pull_outliers(const struct st_mirror *mirror, struct st_outliers *list);

#endif

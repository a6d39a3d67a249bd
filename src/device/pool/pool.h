// SPDX-License-Identifier: Apache-2.0
// The host's cores as a device: their vector units, or their tile unit.
#ifndef ST_DEVICE_POOL_POOL_H
#define ST_DEVICE_POOL_POOL_H

#include "device/list.h"
#include "device/weight_set.h"

// pool_run.c: runs a job on the loan.
void st_pool_device_start(struct st_device *device, struct st_job *job);

struct pool_device {
    struct st_device base;
    struct st_pool *workers;
    const struct st_int8_kernel *kernel;
    const struct st_elementwise *elementwise;
    const struct st_nested_int8_kernel *nested;
    // Of each worker, room for a group of a linear whose panels are made when they are used. The
    // first one's is that of a step's input where no panels are made.
    int8_t *groups; // [workers, group_bytes]
    size_t group_bytes;
};

struct pool_buffer {
    struct st_buffer base;
    unsigned char *data;
};

struct pool_weights {
    struct st_device_weights base;
    struct st_int8_weight weight;
};

#endif

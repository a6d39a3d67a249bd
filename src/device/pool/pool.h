// SPDX-License-Identifier: Apache-2.0
// The host's cores as a device: their vector units, or their tile unit.
#ifndef ST_DEVICE_POOL_POOL_H
#define ST_DEVICE_POOL_POOL_H

#include "device/list.h"
#include "device/weight_set.h"

enum { ST_POOL_FEW_ROWS = 6 };

// pool_run.c: runs a job on the loan.
void st_pool_device_start(struct st_device *device, struct st_job *job);

struct pool_device {
    struct st_device base;
    struct st_pool *workers;
    const struct st_int8_kernel *kernel;
    const struct st_int8_kernel *few; // for up to ST_POOL_FEW_ROWS rows of input
    const struct st_elementwise *elementwise;
    const struct st_nested_int8_kernel *nested;
    // Of each worker, room for a group of a linear whose panels are made when they are used.
    void *groups; // [workers, group_bytes]
    size_t group_bytes;
    void *turned; // [ST_POOL_FEW_ROWS, turned_row] a step's input for a kernel with another zero
    size_t turned_row;
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

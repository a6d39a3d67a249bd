// SPDX-License-Identifier: Apache-2.0
// Named tensors of a checkpoint, whatever file they lie in: a hash table over views of mapped
// files.
#ifndef ST_FORMAT_TENSORS_H
#define ST_FORMAT_TENSORS_H

#include "base/dtype.h"
#include "base/status.h"

enum { ST_MAX_DIMS = 4 };

// A view: data belongs to the checkpoint. dims are outermost first (a linear is [outputs, inputs]);
// unused ones are
// 1. Elements of the last dimension are adjacent; its length is a multiple of the type's
// block_items. data may have any alignment: read it with unaligned loads (memcpy).
struct st_tensor {
    const char *name;
    const void *data;
    uint64_t dims[ST_MAX_DIMS];
    size_t bytes;
    enum st_dtype dtype;
    uint32_t n_dims;
};

struct st_tensors;

stint_status st_tensors_open(size_t capacity, struct st_tensors **tensors);
void st_tensors_close(struct st_tensors *tensors); // accepts NULL

// Copies the tensor and its name. A second one of the same name, dims whose product wraps or does
// not give `tensor->bytes`, a row that is no whole number of blocks: STINT_E_FORMAT.
stint_status st_tensors_add(struct st_tensors *tensors, const struct st_tensor *tensor);

// NULL if absent; borrowed until close.
const struct st_tensor *st_tensors_find(const struct st_tensors *tensors, const char *name);

size_t st_tensors_count(const struct st_tensors *tensors);
const struct st_tensor *st_tensors_at(const struct st_tensors *tensors,
                                      size_t i); // in order of addition

#endif

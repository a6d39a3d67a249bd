// SPDX-License-Identifier: Apache-2.0
// Named tensors of a checkpoint, whatever file they lie in: a hash table over views of mapped
// files.
#ifndef ST_FORMAT_TENSORS_H
#define ST_FORMAT_TENSORS_H

#include "base/dtype.h"
#include "base/status.h"

enum { ST_MAX_DIMS = 4, ST_MAX_NAME_BYTES = 255 };

// A view: data belongs to the checkpoint. dims are outermost first (a linear is [outputs, inputs]);
// unused ones are 1. Elements of the last dimension are adjacent; its length is a multiple of the
// type's block_items. data may have any alignment: read it with unaligned loads (memcpy).
struct st_tensor {
    const char *name;
    const void *data;
    uint64_t dims[ST_MAX_DIMS];
    size_t bytes;
    enum st_dtype dtype;
    uint32_t n_dims;
};

// The bytes that type and dims take. Dims that are 0 or more than ST_MAX_DIMS, a product that
// wraps, a row that is no whole number of blocks: STINT_E_FORMAT.
stint_status st_tensor_measure(const struct st_tensor *tensor, size_t *bytes);

// GGUF's I2_S, of which no row can be read alone: a tensor's elements in blocks of 32 bytes, byte
// e % 32 of a block has element e in bits 6 - 2 * (e / 32), and behind all blocks a float32 with
// which codes less 1 are multiplied. Such tensors are set aside as bytes.
enum { ST_I2_S_GGUF = 36, ST_I2_S_ITEMS = 128, ST_I2_S_BYTES = 32, ST_I2_S_TAIL = 32 };

struct st_tensors;

stint_status st_tensors_open(size_t capacity, struct st_tensors **tensors);
void st_tensors_close(struct st_tensors *tensors); // accepts NULL

// Copies the tensor and its name. An empty name or one over ST_MAX_NAME_BYTES, a second one of the
// same name, a shape that cannot be measured or does not take `tensor->bytes`: STINT_E_FORMAT.
stint_status st_tensors_add(struct st_tensors *tensors, const struct st_tensor *tensor);

// Remembers a tensor that a file holds but that cannot be read, and why (a whole clause, e.g. "its
// type I64 cannot be used"): only its use is an error then. Copies both. A second one of the same
// name: STINT_E_FORMAT.
stint_status st_tensors_set_aside(struct st_tensors *tensors, const char *name, const char *why);

// The same of one of bytes (dims, data and `bytes` set), which st_tensors_find_bytes() finds. A
// shape that does not take `bytes`: STINT_E_FORMAT.
stint_status st_tensors_set_bytes_aside(struct st_tensors *tensors, const struct st_tensor *tensor,
                                        const char *why);

// NULL if absent or set aside; borrowed until close.
const struct st_tensor *st_tensors_find(const struct st_tensors *tensors, const char *name);
// A tensor of bytes, whose dtype means nothing; NULL if there is none. Borrowed until close.
const struct st_tensor *st_tensors_find_bytes(const struct st_tensors *tensors, const char *name);
// Why a tensor was set aside; NULL if it was not. Borrowed until close.
const char *st_tensors_why_aside(const struct st_tensors *tensors, const char *name);
// The failure for a name that st_tensors_find does not know: STINT_E_UNSUPPORTED with the reason if
// it was set aside, else STINT_E_FORMAT "is missing".
stint_status st_tensors_missing(const struct st_tensors *tensors, const char *name);

// STINT_E_FORMAT, naming both, if two of the tensors from the `first`-th on share bytes.
stint_status st_tensors_check_overlap(const struct st_tensors *tensors, size_t first);

size_t st_tensors_count(const struct st_tensors *tensors);
const struct st_tensor *st_tensors_at(const struct st_tensors *tensors,
                                      size_t i); // in order of addition

#endif

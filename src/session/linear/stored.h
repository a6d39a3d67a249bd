// SPDX-License-Identifier: Apache-2.0
// The linears that a device computes as they are stored (device/stored.h): floats, and in steps
// quantized blocks and nested codes. The device gets the inputs as the host's kernels would;
// biases, outliers and what it has no room for stay with the host, which also goes on where it
// fails. Only where all weights are in memory.
#ifndef ST_SESSION_LINEAR_STORED_H
#define ST_SESSION_LINEAR_STORED_H

#include "device/device.h"
#include "model/weights_nested.h"

#include <pthread.h>

struct stint_session;
struct st_run;
struct st_operands;
struct st_npu_options;

struct st_stored_slot {
    const struct st_linear_weight *weight;
    struct st_device_stored *stored; // NULL: the host's
    enum st_stored_form form;
};

struct st_stored {
    struct st_device *device; // NULL: there is none
    bool own;                 // not that of the INT8 subgraphs
    bool second;              // it is the second of two
    size_t n_slots;
    struct st_stored_slot *slots; // by layer, role, expert and part
    struct st_buffer *in, *out;
    pthread_mutex_t lock; // of the buffers
};

// Takes the session's devices, or opens the first that `options` name and that can do this, and
// gives it all linears that it has room for. One that cannot be opened for them alone is one
// warning.
stint_status st_stored_open(struct stint_session *s, const struct st_npu_options *options);
void st_stored_close(struct stint_session *s);

// Inputs of linears, quantized where `form` says so.
struct st_stored_input {
    enum st_stored_form form;
    const float *x;                       // [n, k]
    const struct st_blocks_chunk *chunks; // [n, chunks of k]
    const struct st_nested_input *nested; // of n * terms tokens
    size_t n, k;
    const unsigned *bits; // of nested codes: of each linear
};
// Computes those of the operands' linears that the device has in this form: y[i] gets products
// without bias and outliers, from row `first` on. Returns a set of bits: of the linears that are
// done.
uint32_t st_stored_multiply(const struct st_run *run, const struct st_operands *operands,
                            size_t first, const struct st_linear_weight *const *weights,
                            size_t n_linears, const struct st_stored_input *input);

#endif

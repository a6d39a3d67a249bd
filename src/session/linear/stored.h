// SPDX-License-Identifier: Apache-2.0
// The linears that a device computes as they are stored (device/stored.h): floats, and in steps
// quantized blocks and nested codes. The device gets the inputs as the host's kernels would;
// biases, outliers and what it has no room for stay with the host, which also goes on where it
// fails. Only where all weights are in memory.
//
// A device with the bits of the host's products (caps.host_products) computes the first rows of
// nested linears in steps while the host computes the others. Its share follows what both have
// taken so far (session/linear/share.h), so no bit may depend on it.
#ifndef ST_SESSION_LINEAR_STORED_H
#define ST_SESSION_LINEAR_STORED_H

#include "device/device.h"
#include "model/weights_nested.h"
#include "session/linear/share.h"

#include <pthread.h>

struct stint_session;
struct st_npu_options;

enum { ST_STORED_ROWS = STINT_MAX_STEP_ROWS }; // of inputs at a time

struct st_stored_slot {
    const struct st_linear_weight *weight;
    struct st_device_stored *stored; // NULL: the host's
    enum st_stored_form form;
};

struct st_stored {
    struct st_device *device; // NULL: there is none
    bool own;                 // not that of the INT8 subgraphs
    bool second;              // it is the second of two
    bool shares;              // it computes beside the host, else instead of it
    bool whole;               // it takes all rows, although it could share them
    struct st_share share;
    size_t n_slots;
    struct st_stored_slot *slots; // by layer, role, expert and part
    struct st_buffer *in, *out;
    pthread_mutex_t lock; // of the buffers
};

// Takes the session's devices, or opens the first that `options` name and that can do this, and
// gives it all linears that it has room for. One that cannot be opened for them alone is one
// warning. npu_hot: as in stint_session_options; negative: no rows are shared, 2: the device gets
// all.
stint_status st_stored_open(struct stint_session *s, const struct st_npu_options *options,
                            float npu_hot);
void st_stored_close(struct stint_session *s);

// Those of a unit's linears, [ST_MAX_LINEARS].
struct st_stored_slot *st_stored_slots(const struct stint_session *s,
                                       const struct st_linear_id *unit);

#endif

// SPDX-License-Identifier: Apache-2.0
// Attention of prompts on a device that computes it (device/attention.h), over the session's KV
// cache, which stays the host's: the host appends and decodes, the device reads the rows where they
// lie, or has a copy. It is told of the rows that it does not know yet before it reads them. The
// host computes floats in the same order, so either may compute any chunk of any layer, and where
// the device fails the host goes on.
#ifndef ST_SESSION_KV_DEVICE_ATTENTION_H
#define ST_SESSION_KV_DEVICE_ATTENTION_H

#include "device/attention.h"
#include "model/config.h"

#include <pthread.h>

struct st_buffer;
struct st_device;
struct st_run;
struct stint_session;

struct st_kv_device {
    struct st_device *device; // NULL: the host attends
    bool second;              // it is the second of two
    bool attends[ST_MAX_LAYERS];
    struct st_buffer *cache; // the host's
    struct st_buffer *rows;  // queries of a chunk, then what they attend to
    uint32_t *held;          // [n_sequences, n_layers] rows of a cache that the device knows
    pthread_mutex_t lock;    // of the three above
};

// Takes the session's devices, whose other jobs are set up. One that has no room for the cache, or
// fails, is not used.
void st_kv_device_open(struct stint_session *s);
void st_kv_device_close(struct stint_session *s);
// Has the device keep the cache for steps too (step/device_step.h), though it attends in no prompt.
stint_status st_kv_device_share(struct stint_session *s, struct st_device *device);
// With the lock held. Tells it the rows of all layers before `end`; then, that it has written those
// of this position, and the host has the same. What a step leaves that fails the host writes again,
// and says so.
stint_status st_kv_device_tell(const struct stint_session *s, uint32_t sequence, size_t end);
void st_kv_device_told(const struct stint_session *s, uint32_t sequence, size_t position);
struct st_device_attention st_kv_attention_shape(const struct stint_session *s, uint32_t layer);
// A sequence's rows of all layers, or of one, are others from this position on.
void st_kv_device_forget(struct stint_session *s, uint32_t sequence, size_t position);
void st_kv_device_forget_layer(struct stint_session *s, uint32_t sequence, uint32_t layer,
                               size_t position);
// Bit p: enum st_processor p can compute this layer's attention.
uint8_t st_kv_processors(const struct stint_session *s, uint32_t layer);
// Rotated queries of a prompt, in the buffers -> attended. False: it is left to the host.
bool st_kv_device_attend(const struct st_run *run);

#endif

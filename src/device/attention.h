// SPDX-License-Identifier: Apache-2.0
// Attention of prompts over the host's KV cache, for devices that compute it (ops->attends): a
// layer's softmax over the keys that a query sees, then the mean of their values. Rotated queries
// go in, what they attend to comes out, both as floats. All operations and their order are those of
// the host's kernels for prompts in floats (session/kv/prompt_attention.c), so bits are the host's.
#ifndef ST_DEVICE_ATTENTION_H
#define ST_DEVICE_ATTENTION_H

#include "kernels/kv_types.h"

#include <stdint.h>

// Keys of a step of the online softmax, which begin at multiples of it.
enum { ST_DEVICE_KEY_TILE = 64 };
// Values that a device may read at once: where keys and values begin is aligned to so many.
enum { ST_ATTEND_ALIGNMENT = 4 };

// A layer's. Query head h meets the keys of head h / (n_heads / n_kv).
struct st_device_attention {
    enum st_kv_type type; // of the cache's rows; their values are not mixed
    uint32_t n_heads, n_kv, dim;
    uint32_t window;      // keys that a query sees, its own with them; 0: all up to its own
    float scale, softcap; // kernels/attention.h
};

#endif

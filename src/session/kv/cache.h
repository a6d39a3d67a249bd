// SPDX-License-Identifier: Apache-2.0
// Where the keys and values of a session's sequences lie.
#ifndef ST_SESSION_KV_CACHE_H
#define ST_SESSION_KV_CACHE_H

#include "base/arena.h"
#include "base/size.h"
#include "kernels/attention.h"
#include "session/kv/device_attention.h"
#include "session/kv/key_bias.h"
#include "session/kv/state.h"

#include <stdint.h>

enum {
    ST_KV_SPAN = 512, // a step splits a query's keys into spans: one for each so many of them,
    ST_KV_SPANS = 8,  // but at most so many spans
    ST_KV_KEPT = 64,  // queries of a step whose spans may be on several threads
};

// The memory has room for whole contexts, but the system gives it page by page, as texts grow:
// nobody touches rows that no token has been stored in. A sequence is cut into stretches of
// positions, each with the rows of all layers, so that what a long text takes lies close together
// and may be in huge pages, through which a step reads it 1.2 times as fast.
struct st_kv_cache {
    struct st_arena arena;
    enum st_kv_type type;
    bool layerwise;          // it has room for a single layer of each form
    bool whole;              // one stretch, as devices and memory bounds want it
    size_t positions;        // of a sequence
    size_t stretch;          // of these, in a stretch
    size_t stretch_bytes;    // of all layers that have a cache
    struct st_kv_slot {      // a layer's rows, [n_heads, stretch]; or those that it shares
        size_t offset;       // in a stretch
        size_t row_bytes;    // of one head's key or value of one token
        uint32_t n_heads;    // of keys and values
        bool own;            // no layer before uses it
    } layers[ST_MAX_LAYERS]; // n_heads is 0 without attention
    size_t sequence_bytes;
    bool shared;                  // rows are keys and values at once: attention is latent
    unsigned char *keys, *values; // [sequences] of sequence_bytes
    struct st_key_bias bias;      // that quantized keys leave out
    struct st_state_cache state;  // of layers without attention
    struct st_kv_device device;   // that attends in prompts
};

// STINT_E_ARG with the names there are if it is none of them.
stint_status st_kv_find(const char *name, enum st_kv_type *type);

// The bytes that the session's will take, for `type` and `layerwise` as they are set; the sizes are
// set too. STINT_E_NOMEM if they are too many to count.
stint_status st_kv_measure(struct stint_session *session, size_t *bytes);
// Of so many bytes, once measured.
stint_status st_kv_open(struct stint_session *session, size_t bytes);
// At most so many bytes of it take memory once a sequence has held n_tokens.
size_t st_kv_touched(const struct st_kv_cache *kv, size_t n_tokens);
void st_kv_close(struct st_kv_cache *kv); // accepts one that was never opened

// Whether keys are stored mixed (kernels/kv_types.h). Rows that are values too are not.
static inline bool st_kv_mixes_keys(const struct st_kv_cache *kv) {
    return st_kv_traits[kv->type].mixed_keys && !kv->shared;
}

// Where a position's row of `cache` (kv->keys or kv->values) is.
static inline unsigned char *st_kv_row(const struct st_kv_cache *kv, unsigned char *cache,
                                       uint32_t sequence, uint32_t layer, size_t head,
                                       size_t position) {
    const struct st_kv_slot *slot = &kv->layers[layer];
    return cache + sequence * kv->sequence_bytes + position / kv->stretch * kv->stretch_bytes +
           slot->offset + (head * kv->stretch + position % kv->stretch) * slot->row_bytes;
}
// How many of the rows of positions [position, end) lie one after another, from the first one on.
static inline size_t st_kv_in_row(const struct st_kv_cache *kv, size_t position, size_t end) {
    return st_min(end - position, kv->stretch - position % kv->stretch);
}

// A sequence's rows from a position on, as kernels read them.
struct st_kv_rows st_kv_rows_at(const struct st_kv_cache *kv, uint32_t sequence, uint32_t layer,
                                size_t head, size_t position);

#endif

// SPDX-License-Identifier: Apache-2.0
// A region of the neuron cache (PowerInfer-2, section 4.2): entries of one size in memory, each of
// which holds one of many pieces of a file: slices of a linear, hot clusters, bundles. What is
// taken stays until it is given back; the others are evicted in an order that the giver decides:
// last of all what was used last (LRU), or, where pieces come round in turn, first of all, which
// keeps as many of them as there are entries (a cyclic scan's best order).
#ifndef ST_NEURON_CACHE_H
#define ST_NEURON_CACHE_H

#include "base/arena.h"
#include "base/loader.h"

enum st_evict { ST_EVICT_LAST, ST_EVICT_FIRST };

enum { ST_CACHE_NONE = -1 };

struct st_cache {
    struct st_loader *loader;
    size_t entry_bytes; // pieces are at blocks where it is a multiple of ST_LOAD_BLOCK
    uint32_t n_entries, n_ids, n_used; // n_used: entries that ever held anything
    unsigned char *memory;             // [n_entries, entry_bytes]
    int32_t *entry_of;                 // [n_ids] or ST_CACHE_NONE
    int32_t *id_of;                    // [n_entries] or ST_CACHE_NONE
    uint32_t *before, *next; // [n_entries + 1] order of eviction, a ring through the last one
    uint8_t *held, *fresh;   // [n_entries] taken; loaded and not looked at yet
    struct st_load *loads;   // [n_entries]
    uint64_t hits, misses;   // of st_cache_take()
};

// Sizes must be set. Runs twice on `arena` (base/arena.h); memory is touched as it is filled.
void st_cache_lay_out(struct st_cache *cache, struct st_arena *arena);
// Empties it. Borrows the loader.
void st_cache_open(struct st_cache *cache, struct st_loader *loader);

// Takes the entry of a piece of the file, which is read unless it is there; wait for it before use.
// To take again what is held changes nothing. ST_CACHE_NONE: every entry is held.
int32_t st_cache_take(struct st_cache *cache, uint32_t id, uint64_t offset, size_t bytes);
// Waits until it is there. *fresh: it was read since it was last waited for, so it must be checked.
// On failure the entry is given back, empty.
stint_status st_cache_wait(struct st_cache *cache, int32_t entry, bool *fresh);
void st_cache_give(struct st_cache *cache, int32_t entry, enum st_evict when);
// Gives back an entry whose content is not what it should be.
void st_cache_discard(struct st_cache *cache, int32_t entry);
// Gives back all that is held.
void st_cache_give_all(struct st_cache *cache);

static inline unsigned char *st_cache_data(const struct st_cache *cache, int32_t entry) {
    return cache->memory + (size_t)entry * cache->entry_bytes;
}
// True if an entry can be used without waiting.
static inline bool st_cache_is_there(const struct st_cache *cache, int32_t entry) {
    return st_load_is_done(&cache->loads[entry]);
}
static inline bool st_cache_has(const struct st_cache *cache, uint32_t id) {
    return cache->entry_of[id] != ST_CACHE_NONE;
}

#endif

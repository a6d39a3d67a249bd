// SPDX-License-Identifier: Apache-2.0
// A region of the neuron cache (PowerInfer-2, section 4.2): entries of one size in memory. Each
// holds one piece of a file: a slice of a linear, a hot cluster or a bundle. What lies in several
// places of the file is read by as many loads. A taken entry stays
// until it is given back. Whoever gives it back decides when it is evicted: last (LRU), or first,
// which is the best order for pieces that are used in turn (a cyclic scan). Where uses are counted,
// what was used least goes first: each use counts half after ST_CACHE_HALF_LIFE ages.
#ifndef ST_NEURON_CACHE_H
#define ST_NEURON_CACHE_H

#include "base/arena.h"
#include "base/loader.h"

enum st_evict { ST_EVICT_LAST, ST_EVICT_FIRST };

enum {
    ST_CACHE_NONE = -1,
    ST_CACHE_HALF_LIFE = 8, // of a use, in calls of st_cache_age()
    ST_CACHE_TRIES = 64,    // entries among which the least used is looked for
};

// A piece of a file: bytes from `offset` on.
struct st_extent {
    uint64_t offset;
    size_t bytes;
    uint32_t file; // of the loader's
    size_t at;     // where it lies in its entry
};

struct st_cache {
    struct st_loader *loader;
    size_t entry_bytes; // if a multiple of ST_LOAD_BLOCK, pieces are aligned to blocks
    uint32_t n_entries, n_ids, n_used; // n_used: entries that ever held anything
    uint32_t n_laid_out;               // most entries there can be
    uint32_t max_loads;                // of an entry; 0: 1
    unsigned char *memory;             // [n_laid_out, entry_bytes]
    int32_t *entry_of;                 // [n_ids] or ST_CACHE_NONE
    int32_t *id_of;                    // [n_entries] or ST_CACHE_NONE
    uint32_t *before, *next; // [n_entries + 1] order of eviction, a ring through the last one
    uint8_t *held, *fresh;   // [n_entries] taken; loaded and not checked yet
    struct st_load *loads;   // [n_entries, max_loads]
    uint8_t *n_loads;        // [n_entries]
    uint64_t hits, misses;   // of st_cache_take()
    bool counts_uses;        // set with the sizes
    float *uses;             // [n_ids] of each piece, lately; or NULL
    float one_use;           // what a use counts now
    uint32_t hand;           // the entry at which the search goes on
};

// Sizes must be set. Runs twice on `arena` (base/arena.h); memory is touched as it is filled.
void st_cache_lay_out(struct st_cache *cache, struct st_arena *arena);
// Empties it. Borrows the loader.
void st_cache_open(struct st_cache *cache, struct st_loader *loader);

// Takes the entry of a piece of the file and starts reading it unless it is in memory. Wait for it
// before use. Taking a held entry again changes nothing. ST_CACHE_NONE: every entry is held.
int32_t st_cache_take(struct st_cache *cache, uint32_t id, struct st_extent extent);
// The same for what lies in n places, up to max_loads.
int32_t st_cache_take_all(struct st_cache *cache, uint32_t id, const struct st_extent *extents,
                          uint32_t n);
// Reads n pieces, the ids from `id` on, that lie one behind the other from `first` on and have no
// entry, into entries that never held anything, as far as there are such. They count as neither hit
// nor miss. What cannot be read is left out.
void st_cache_fill(struct st_cache *cache, uint32_t id, uint32_t n, struct st_extent first);
// Waits until the entry is loaded. *fresh: it was read since the last wait, so it must be checked.
// On failure the entry is given back, empty.
stint_status st_cache_wait(struct st_cache *cache, int32_t entry, bool *fresh);
void st_cache_give(struct st_cache *cache, int32_t entry, enum st_evict when);
// Changes when an entry that is not held is evicted.
void st_cache_reorder(struct st_cache *cache, int32_t entry, enum st_evict when);
// Takes the entry of a piece only if it has one, as what may be needed: it counts neither as hit
// nor as miss.
bool st_cache_hold(struct st_cache *cache, uint32_t id);
// Counts a use of a piece, and an age of all. pre: uses are counted
void st_cache_use(struct st_cache *cache, uint32_t id);
void st_cache_age(struct st_cache *cache);
// Gives back an entry with damaged content.
void st_cache_discard(struct st_cache *cache, int32_t entry);
// Has so many entries from now on, at most as many as were laid out. The memory of those that go
// returns to the system. pre: none of them is held.
void st_cache_resize(struct st_cache *cache, uint32_t n_entries);
// Gives back all held entries, and forgets what was read and not waited for: after a failure it may
// be damaged too.
void st_cache_give_all(struct st_cache *cache);

static inline unsigned char *st_cache_data(const struct st_cache *cache, int32_t entry) {
    return cache->memory + (size_t)entry * cache->entry_bytes;
}
// True if an entry can be used without waiting.
bool st_cache_is_there(const struct st_cache *cache, int32_t entry);
static inline bool st_cache_has(const struct st_cache *cache, uint32_t id) {
    return cache->entry_of[id] != ST_CACHE_NONE;
}

#endif

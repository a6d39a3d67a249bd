// SPDX-License-Identifier: Apache-2.0
#include "neuron/cache.h"

#include "base/size.h"

#include <math.h>
#include <string.h>

enum { FILL_LOADS = 16 }; // at the same time

// The ring's two ends meet in an entry that does not exist.
static uint32_t anchor(const struct st_cache *c) {
    return c->n_laid_out;
}

static void unlink_entry(struct st_cache *c, uint32_t e) {
    c->next[c->before[e]] = c->next[e];
    c->before[c->next[e]] = c->before[e];
}

static void link_entry(struct st_cache *c, uint32_t e, enum st_evict when) {
    uint32_t a = anchor(c), before = when == ST_EVICT_FIRST ? a : c->before[a];
    c->before[e] = before;
    c->next[e] = c->next[before];
    c->before[c->next[before]] = e;
    c->next[before] = e;
}

static struct st_load *loads_of(const struct st_cache *c, uint32_t e) {
    return c->loads + (size_t)e * c->max_loads;
}

void st_cache_lay_out(struct st_cache *c, struct st_arena *arena) {
    size_t n = c->n_laid_out = c->n_entries;
    c->max_loads = c->max_loads ? c->max_loads : 1;
    c->entry_of = ST_TAKE(arena, int32_t, c->n_ids);
    c->id_of = ST_TAKE(arena, int32_t, n);
    c->before = ST_TAKE(arena, uint32_t, n + 1);
    c->next = ST_TAKE(arena, uint32_t, n + 1);
    c->held = ST_TAKE(arena, uint8_t, n);
    c->fresh = ST_TAKE(arena, uint8_t, n);
    c->loads = ST_TAKE(arena, struct st_load, n * c->max_loads);
    c->n_loads = ST_TAKE(arena, uint8_t, n);
    c->uses = c->counts_uses ? ST_TAKE(arena, float, c->n_ids) : NULL;
    unsigned char *memory = st_arena_take(arena, n * c->entry_bytes + ST_LOAD_BLOCK, 1);
    uintptr_t mask = ST_LOAD_BLOCK - 1;
    c->memory = memory ? memory + (-(uintptr_t)memory & mask) : NULL;
}

void st_cache_open(struct st_cache *c, struct st_loader *loader) {
    c->loader = loader;
    c->hits = c->misses = c->n_used = c->hand = 0;
    c->one_use = 1.0f;
    if (c->uses) memset(c->uses, 0, c->n_ids * sizeof *c->uses);
    c->before[anchor(c)] = c->next[anchor(c)] = anchor(c);
    for (uint32_t i = 0; i < c->n_ids; i++) c->entry_of[i] = ST_CACHE_NONE;
    for (uint32_t e = 0; e < c->n_entries; e++) {
        c->id_of[e] = ST_CACHE_NONE;
        c->held[e] = false;
        c->n_loads[e] = 0;
    }
}

static void forget_id(struct st_cache *c, uint32_t e) {
    if (c->id_of[e] != ST_CACHE_NONE) c->entry_of[c->id_of[e]] = ST_CACHE_NONE;
    c->id_of[e] = ST_CACHE_NONE;
}

// What was given back while it was still being read must arrive first.
static void settle(struct st_cache *c, uint32_t e) {
    for (uint32_t i = 0; i < c->n_loads[e]; i++)
        if (!st_load_is_done(&loads_of(c, e)[i]))
            (void)st_loader_wait(c->loader, &loads_of(c, e)[i]);
}

static void prefetch(struct st_cache *c, uint32_t e, uint32_t id, const struct st_extent *extents,
                     uint32_t n) {
    settle(c, e);
    forget_id(c, e);
    c->id_of[e] = (int32_t)id;
    c->entry_of[id] = (int32_t)e;
    c->fresh[e] = true;
    c->n_loads[e] = (uint8_t)n;
    for (uint32_t i = 0; i < n; i++) {
        struct st_load *load = &loads_of(c, e)[i];
        load->offset = extents[i].offset;
        load->bytes = extents[i].bytes;
        load->file = extents[i].file;
        load->to = st_cache_data(c, (int32_t)e) + extents[i].at;
        load->apart = c->entry_bytes % ST_LOAD_BLOCK != 0;
        st_loader_prefetch(c->loader, load);
    }
}

static bool has_failed(const struct st_cache *c, int32_t e) {
    const struct st_load *loads = loads_of(c, (uint32_t)e);
    for (uint32_t i = 0; i < c->n_loads[e]; i++)
        if (atomic_load_explicit(&loads[i].state, memory_order_acquire) == ST_LOAD_FAILED)
            return true;
    return false;
}

bool st_cache_is_there(const struct st_cache *c, int32_t e) {
    const struct st_load *loads = loads_of(c, (uint32_t)e);
    for (uint32_t i = 0; i < c->n_loads[e]; i++)
        if (!st_load_is_done(&loads[i])) return false;
    return true;
}

int32_t st_cache_take(struct st_cache *c, uint32_t id, struct st_extent extent) {
    return st_cache_take_all(c, id, &extent, 1);
}

static float uses_of(const struct st_cache *c, uint32_t e) {
    return c->id_of[e] == ST_CACHE_NONE ? 0.0f : c->uses[c->id_of[e]];
}

// The entry that makes room: the first in order, or one of some others that was used less.
static uint32_t victim(struct st_cache *c) {
    uint32_t best = c->next[anchor(c)];
    if (!c->uses || best == anchor(c)) return best;
    for (uint32_t i = 0; i < ST_CACHE_TRIES && uses_of(c, best) > 0.0f; i++) {
        uint32_t e = c->hand++ % c->n_entries;
        if (!c->held[e] && uses_of(c, e) < uses_of(c, best)) best = e;
    }
    return best;
}

void st_cache_use(struct st_cache *c, uint32_t id) {
    c->uses[id] += c->one_use;
}

// Uses of now count more and more, which is as if those before counted less.
void st_cache_age(struct st_cache *c) {
    c->one_use *= exp2f(1.0f / (float)ST_CACHE_HALF_LIFE);
    if (c->one_use < 1e30f) return;
    for (uint32_t i = 0; i < c->n_ids; i++) c->uses[i] /= c->one_use;
    c->one_use = 1.0f;
}

int32_t st_cache_take_all(struct st_cache *c, uint32_t id, const struct st_extent *extents,
                          uint32_t n) {
    int32_t found = c->entry_of[id];
    if (found != ST_CACHE_NONE) {
        if (c->held[found]) return found;
        unlink_entry(c, (uint32_t)found);
        c->held[found] = true;
        if (has_failed(c, found)) { // it was asked for too early: once more
            c->misses++;
            prefetch(c, (uint32_t)found, id, extents, n);
        } else {
            c->hits++;
        }
        return found;
    }
    uint32_t e;
    if (c->n_used < c->n_entries) {
        e = c->n_used++;
    } else {
        e = victim(c);
        if (e == anchor(c)) return ST_CACHE_NONE;
        unlink_entry(c, e);
    }
    c->misses++;
    c->held[e] = true;
    prefetch(c, e, id, extents, n);
    return (int32_t)e;
}

// What one load has read.
static void publish(struct st_cache *c, uint32_t e, uint32_t id, uint32_t n) {
    for (uint32_t i = 0; i < n; i++, e++, id++) {
        c->id_of[e] = (int32_t)id;
        c->entry_of[id] = (int32_t)e;
        c->fresh[e] = true;
    }
}

void st_cache_fill(struct st_cache *c, uint32_t id, uint32_t n, struct st_extent first) {
    struct st_load loads[FILL_LOADS] = {0};
    uint32_t begin = c->n_used, each;
    n = (uint32_t)st_min(n, c->n_entries - begin);
    each = (uint32_t)st_ceil_div(n, FILL_LOADS);
    c->n_used += n;
    for (uint32_t i = 0; i * each < n; i++) {
        loads[i].offset = first.offset + (uint64_t)i * each * first.bytes;
        loads[i].bytes = st_min(each, n - i * each) * first.bytes;
        loads[i].file = first.file;
        loads[i].to = st_cache_data(c, (int32_t)(begin + i * each));
        loads[i].apart = c->entry_bytes % ST_LOAD_BLOCK != 0;
        st_loader_prefetch(c->loader, &loads[i]);
    }
    for (uint32_t e = begin; e < begin + n; e++) link_entry(c, e, ST_EVICT_LAST);
    for (uint32_t i = 0; i * each < n; i++)
        if (st_loader_wait(c->loader, &loads[i]) == STINT_OK)
            publish(c, begin + i * each, id + i * each, (uint32_t)st_min(each, n - i * each));
}

stint_status st_cache_wait(struct st_cache *c, int32_t entry, bool *fresh) {
    stint_status status = STINT_OK;
    for (uint32_t i = 0; i < c->n_loads[entry] && status == STINT_OK; i++)
        status = st_loader_wait(c->loader, &loads_of(c, (uint32_t)entry)[i]);
    *fresh = c->fresh[entry];
    c->fresh[entry] = false;
    if (status != STINT_OK) st_cache_discard(c, entry);
    return status;
}

void st_cache_give(struct st_cache *c, int32_t entry, enum st_evict when) {
    if (!c->held[entry]) return;
    c->held[entry] = false;
    link_entry(c, (uint32_t)entry, when);
}

void st_cache_reorder(struct st_cache *c, int32_t entry, enum st_evict when) {
    if (c->held[entry]) return;
    unlink_entry(c, (uint32_t)entry);
    link_entry(c, (uint32_t)entry, when);
}

bool st_cache_hold(struct st_cache *c, uint32_t id) {
    int32_t entry = c->entry_of[id];
    if (entry == ST_CACHE_NONE) return false;
    if (!c->held[entry]) unlink_entry(c, (uint32_t)entry);
    c->held[entry] = true;
    return true;
}

void st_cache_discard(struct st_cache *c, int32_t entry) {
    forget_id(c, (uint32_t)entry);
    st_cache_give(c, entry, ST_EVICT_FIRST);
}

void st_cache_resize(struct st_cache *c, uint32_t n_entries) {
    for (uint32_t e = n_entries; e < c->n_used; e++) {
        settle(c, e);
        forget_id(c, e);
        unlink_entry(c, e);
    }
    size_t bytes = (c->n_entries - st_min(c->n_entries, n_entries)) * c->entry_bytes;
    if (bytes) st_arena_forget(st_cache_data(c, (int32_t)n_entries), bytes);
    c->n_entries = n_entries;
    c->n_used = c->n_used < n_entries ? c->n_used : n_entries;
}

void st_cache_give_all(struct st_cache *c) {
    for (uint32_t e = 0; e < c->n_used; e++) {
        if (c->fresh[e]) forget_id(c, e);
        st_cache_give(c, (int32_t)e, ST_EVICT_FIRST);
    }
}

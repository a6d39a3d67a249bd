// SPDX-License-Identifier: Apache-2.0
// One block of memory per lifetime (model, session, scratch). The same layout function runs twice:
// on an arena opened by st_arena_measure() to learn the size, then on one with that size to carve,
// so that `stint inspect`,
// `--memory` and the allocator cannot disagree.
#ifndef ST_BASE_ARENA_H
#define ST_BASE_ARENA_H

#include "base/status.h"

#include <stdbool.h>

struct st_arena {
    unsigned char *base; // NULL while measuring
    size_t capacity;     // bytes
    size_t mapped;       // bytes that the system gave: capacity in whole huge pages
    size_t used;         // bytes, also while measuring
    size_t n_taken;      // calls of st_arena_take()
    bool overflow;       // a size did not fit: everything taken afterwards is NULL
};

// An arena without memory that only adds up.
struct st_arena st_arena_measure(void);

// Maps `bytes` zeroed bytes (not touched until used; huge pages where the system gives them).
// *arena is untouched on failure. STINT_E_NOMEM.
stint_status st_arena_open(struct st_arena *arena, size_t bytes);
// The same without huge pages, for what is filled little by little: only what is touched takes
// memory, page by page.
stint_status st_arena_open_sparse(struct st_arena *arena, size_t bytes);
void st_arena_close(struct st_arena *arena); // accepts a measuring or zeroed arena

// `count` elements of `element_bytes`, 64-byte aligned. NULL while measuring and on overflow or
// exhaustion (then `overflow` is set: check it once at the end with st_arena_check).
void *st_arena_take(struct st_arena *arena, size_t count, size_t element_bytes);
#define ST_TAKE(arena, type, count) ((type *)st_arena_take((arena), (count), sizeof(type)))

// STINT_E_NOMEM with a text that names `what` if anything taken did not fit.
stint_status st_arena_check(const struct st_arena *arena, const char *what);

// Gives the memory behind whole pages of taken [0, bytes) back to the system: they are zeros when
// they are next used.
void st_arena_forget(void *taken, size_t bytes);
// Whole huge pages of taken [0, bytes) take memory as such, if the system has any.
void st_arena_prefer_huge(void *taken, size_t bytes);
// No huge pages behind whole pages of taken [0, bytes): of what is forgotten only the pages that
// are used again take memory.
void st_arena_page_by_page(void *taken, size_t bytes);

// Scratch use: everything taken after the mark is given back.
static inline size_t st_arena_mark(const struct st_arena *arena) {
    return arena->used;
}
void st_arena_rewind(struct st_arena *arena, size_t mark);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include "base/size.h"

#include <sys/mman.h>

enum { ALIGNMENT = 64, HUGE_PAGE_BYTES = 2 << 20 };

struct st_arena st_arena_measure(void) {
    return (struct st_arena){.capacity = SIZE_MAX};
}

stint_status st_arena_open(struct st_arena *arena, size_t bytes) {
    size_t capacity = bytes ? bytes : ALIGNMENT;
    void *base = mmap(NULL, capacity, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return st_fail(STINT_E_NOMEM, "the system gives no %zu MiB of memory", bytes >> 20);
    // Fewer TLB misses; only a hint, so a refusal does not matter.
    if (capacity >= HUGE_PAGE_BYTES) madvise(base, capacity, MADV_HUGEPAGE);
    *arena = (struct st_arena){.base = base, .capacity = capacity};
    return STINT_OK;
}

void st_arena_close(struct st_arena *arena) {
    if (arena->base) munmap(arena->base, arena->capacity);
    *arena = (struct st_arena){0};
}

void *st_arena_take(struct st_arena *arena, size_t count, size_t element_bytes) {
    size_t bytes, end;
    if (arena->overflow) return NULL;
    if (!st_size_mul(count, element_bytes, &bytes) || bytes > SIZE_MAX - ALIGNMENT ||
        !st_size_add(arena->used, st_round_up(bytes, ALIGNMENT), &end) || end > arena->capacity) {
        arena->overflow = true;
        return NULL;
    }
    void *taken = arena->base ? arena->base + arena->used : NULL;
    arena->used = end;
    return taken;
}

stint_status st_arena_check(const struct st_arena *arena, const char *what) {
    if (!arena->overflow) return STINT_OK;
    return st_fail(STINT_E_NOMEM, "no memory for %s: its size is beyond any limit", what);
}

void st_arena_rewind(struct st_arena *arena, size_t mark) {
    if (mark <= arena->used) arena->used = mark;
}

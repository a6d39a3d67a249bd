// SPDX-License-Identifier: Apache-2.0
// One mapping, carved from the front in 64-byte steps. Invariant: used <= capacity, and used is a
// multiple of 64. Under AddressSanitizer there are bytes between any two things taken; they, and
// those given back, are poisoned.
#include "base/arena.h"

#include "base/map.h"
#include "base/size.h"

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAVE_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_POISON 1
#endif
#endif
#ifdef HAVE_POISON
#include <sanitizer/asan_interface.h>
enum { BETWEEN = 64 };
#else
enum { BETWEEN = 0 };
#define ASAN_POISON_MEMORY_REGION(start, bytes)   ((void)(start), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(start, bytes) ((void)(start), (void)(bytes))
#endif

enum { ALIGNMENT = 64, HUGE_PAGE_BYTES = 2 << 20 };

struct st_arena st_arena_measure(void) {
    return (struct st_arena){.capacity = SIZE_MAX};
}

stint_status st_arena_open_sparse(struct st_arena *arena, size_t bytes) {
    size_t capacity = bytes ? bytes : ALIGNMENT;
    void *base = mmap(NULL, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return st_fail(STINT_E_NOMEM, "the system has no %zu MiB of memory to give", bytes >> 20);
    *arena = (struct st_arena){.base = base, .capacity = capacity, .mapped = capacity};
    return STINT_OK;
}

// Fewer TLB misses. The system gives huge pages only for whole, aligned ones, and what stands at
// the end of an arena is used as often as the rest: more is mapped, and cut to whole ones. Advice
// is only a hint, so a refusal does not matter.
static stint_status open_huge(struct st_arena *arena, size_t bytes) {
    size_t whole = st_round_up(bytes, HUGE_PAGE_BYTES);
    ST_TRY(st_arena_open_sparse(arena, whole + HUGE_PAGE_BYTES));
    size_t before = -(uintptr_t)arena->base % HUGE_PAGE_BYTES;
    if (before) munmap(arena->base, before);
    arena->base += before;
    munmap(arena->base + whole, HUGE_PAGE_BYTES - before);
    st_arena_prefer_huge(arena->base, whole);
    arena->mapped = whole;
    arena->capacity = bytes;
    return STINT_OK;
}

stint_status st_arena_open(struct st_arena *arena, size_t bytes) {
    bool huge = bytes >= HUGE_PAGE_BYTES && bytes <= SIZE_MAX / 2;
    return huge ? open_huge(arena, bytes) : st_arena_open_sparse(arena, bytes);
}

void st_arena_close(struct st_arena *arena) {
    if (arena->base) {
        ASAN_UNPOISON_MEMORY_REGION(arena->base, arena->mapped);
        munmap(arena->base, arena->mapped);
    }
    *arena = (struct st_arena){0};
}

void st_arena_forget(void *taken, size_t bytes) {
    st_map_forget(taken, bytes);
}

void st_arena_prefer_huge(void *taken, size_t bytes) {
    uintptr_t from = st_round_up((uintptr_t)taken, HUGE_PAGE_BYTES);
    uintptr_t to = ((uintptr_t)taken + bytes) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if (from < to) madvise((void *)from, to - from, MADV_HUGEPAGE);
}

void st_arena_page_by_page(void *taken, size_t bytes) {
    st_map_page_by_page(taken, bytes);
}

void *st_arena_take(struct st_arena *arena, size_t count, size_t element_bytes) {
    size_t bytes, end;
    if (arena->overflow) return NULL;
    if (!st_size_mul(count, element_bytes, &bytes) || bytes > SIZE_MAX - ALIGNMENT - BETWEEN ||
        !st_size_add(arena->used, st_round_up(bytes, ALIGNMENT) + BETWEEN, &end) ||
        end > arena->capacity) {
        arena->overflow = true;
        return NULL;
    }
    unsigned char *taken = arena->base ? arena->base + arena->used : NULL;
    if (taken) {
        ASAN_UNPOISON_MEMORY_REGION(taken, bytes);
        ASAN_POISON_MEMORY_REGION(taken + bytes, end - arena->used - bytes);
    }
    arena->used = end;
    arena->n_taken++;
    return taken;
}

stint_status st_arena_check(const struct st_arena *arena, const char *what) {
    if (!arena->overflow) return STINT_OK;
    return st_fail(STINT_E_NOMEM, "no memory for %s: more than the %zu MiB at hand", what,
                   arena->capacity >> 20);
}

void st_arena_rewind(struct st_arena *arena, size_t mark) {
    if (mark > arena->used) return;
    if (arena->base) ASAN_POISON_MEMORY_REGION(arena->base + mark, arena->used - mark);
    arena->used = mark;
}

// SPDX-License-Identifier: Apache-2.0
// A region of the neuron cache against a plain list of what it should hold.
#include "neuron/cache.h"
#include "support/support.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { IDS = 40, ENTRIES = 8 };

// Whole blocks, what lies anywhere, and what lies in two places.
static const struct {
    size_t entry_bytes;
    uint32_t n_loads;
} kinds[] = {{2 * ST_LOAD_BLOCK, 1}, {6336, 1}, {2 * ST_LOAD_BLOCK, 2}};
static size_t entry_bytes;
static uint32_t n_loads;
static bool counts_uses;

struct world {
    struct st_arena arena;
    struct st_cache cache;
    struct st_loader *loader;
    unsigned char *data;
    const char *path;
    int file;
};

static struct world open_world(void) {
    struct world w = {.data = malloc(IDS * entry_bytes)};
    struct st_arena measure = st_arena_measure();
    ts_random_bytes(w.data, IDS * entry_bytes);
    w.path = ts_write("file", w.data, IDS * entry_bytes);
    w.file = open(w.path, O_RDONLY);
    w.cache = (struct st_cache){.entry_bytes = entry_bytes,
                                .n_entries = ENTRIES,
                                .n_ids = IDS,
                                .max_loads = n_loads,
                                .counts_uses = counts_uses};
    st_cache_lay_out(&w.cache, &measure);
    assert_int_equal(st_arena_open(&w.arena, measure.used), STINT_OK);
    st_cache_lay_out(&w.cache, &w.arena);
    struct st_loader_options options = {
        .files = &(struct st_loader_file){w.file, "file"}, .n_files = 1, .n_threads = 2};
    assert_int_equal(st_loader_open(&options, &w.loader), STINT_OK);
    st_cache_open(&w.cache, w.loader);
    return w;
}

static void close_world(struct world *w) {
    st_loader_drain(w->loader);
    st_loader_close(w->loader);
    st_arena_close(&w->arena);
    close(w->file);
    free(w->data);
}

static int32_t take(struct world *w, uint32_t id) {
    struct st_extent extents[2];
    size_t bytes = entry_bytes / n_loads;
    for (uint32_t i = 0; i < n_loads; i++)
        extents[i] = (struct st_extent){
            .offset = (uint64_t)id * entry_bytes + i * bytes, .bytes = bytes, .at = i * bytes};
    return n_loads == 1 ? st_cache_take(&w->cache, id, extents[0])
                        : st_cache_take_all(&w->cache, id, extents, n_loads);
}

// Takes, checks and gives back; true if it was there already.
static bool use(struct world *w, uint32_t id, enum st_evict when) {
    bool fresh, was_there = st_cache_has(&w->cache, id);
    int32_t entry = take(w, id);
    assert_int_not_equal(entry, ST_CACHE_NONE);
    assert_int_equal(st_cache_wait(&w->cache, entry, &fresh), STINT_OK);
    assert_int_equal(fresh, !was_there);
    assert_memory_equal(st_cache_data(&w->cache, entry), w->data + id * entry_bytes, entry_bytes);
    st_cache_give(&w->cache, entry, when);
    return was_there;
}

static void what_was_used_last_stays(void **state) {
    (void)state;
    struct world w = open_world();
    uint32_t list[ENTRIES], n = 0; // the last used one first
    for (size_t step = 0; step < 2000; step++) {
        uint32_t id = (uint32_t)(ts_random_below(3) ? ts_random_below(10) : ts_random_below(IDS));
        uint32_t at = 0;
        while (at < n && list[at] != id) at++;
        assert_int_equal(use(&w, id, ST_EVICT_LAST), at < n);
        if (at == n && n < ENTRIES) n++;
        if (at == ENTRIES) at--;
        memmove(list + 1, list, at * sizeof *list);
        list[0] = id;
    }
    assert_int_equal(w.cache.hits + w.cache.misses, 2000);
    close_world(&w);
}

static void fill(struct world *w, uint32_t id, uint32_t n) {
    st_cache_fill(&w->cache, id, n,
                  (struct st_extent){.offset = (uint64_t)id * entry_bytes, .bytes = entry_bytes});
}

// Each is checked at its first use, like any other that was read.
static void assert_filled(struct world *w, uint32_t id, uint32_t end) {
    for (; id < end; id++) {
        bool fresh;
        assert_true(st_cache_has(&w->cache, id));
        int32_t entry = take(w, id);
        assert_true(st_cache_is_there(&w->cache, entry));
        assert_int_equal(st_cache_wait(&w->cache, entry, &fresh), STINT_OK);
        assert_true(fresh);
        assert_memory_equal(st_cache_data(&w->cache, entry), w->data + id * entry_bytes,
                            entry_bytes);
        st_cache_give(&w->cache, entry, ST_EVICT_LAST);
        assert_true(use(w, id, ST_EVICT_LAST));
    }
}

static void neighbours_fill_it(void **state) {
    (void)state;
    struct world w = open_world();
    fill(&w, 5, 3);
    fill(&w, 20, 0);
    fill(&w, 20, ENTRIES); // there is room for the first five
    assert_int_equal(w.cache.misses, 0);
    assert_filled(&w, 5, 8);
    assert_filled(&w, 20, 25);
    assert_false(st_cache_has(&w.cache, 25));
    fill(&w, 30, 2); // there is none
    assert_false(st_cache_has(&w.cache, 30));
    assert_false(use(&w, 0, ST_EVICT_LAST)); // makes room as ever
    assert_false(st_cache_has(&w.cache, 5));
    close_world(&w);
}

// What is not there is not read, and there is room for others.
static void what_cannot_be_read_does_not_fill_it(void **state) {
    (void)state;
    struct world w = open_world();
    fill(&w, IDS - 2, 2);
    assert_filled(&w, IDS - 2, IDS);
    st_cache_open(&w.cache, w.loader);
    assert_int_equal(truncate(w.path, (off_t)(10 * entry_bytes)), 0);
    fill(&w, 9, 3);
    assert_filled(&w, 9, 10);
    for (uint32_t id = 10; id < 12; id++) assert_false(st_cache_has(&w.cache, id));
    for (uint32_t id = 0; id < ENTRIES; id++) assert_false(use(&w, id, ST_EVICT_LAST));
    close_world(&w);
}

static bool use_counted(struct world *w, uint32_t id) {
    bool was_there = use(w, id, ST_EVICT_LAST);
    st_cache_use(&w->cache, id);
    return was_there;
}

// However much else passes, until its uses are long ago.
static void what_is_used_often_stays(void **state) {
    (void)state;
    counts_uses = true;
    struct world w = open_world();
    counts_uses = false;
    for (int i = 0; i < 1000 * ST_CACHE_HALF_LIFE; i++) st_cache_age(&w.cache);
    for (int i = 0; i < 4; i++) use_counted(&w, 0);
    for (uint32_t id = 1; id < IDS; id++) assert_false(use_counted(&w, id));
    assert_true(st_cache_has(&w.cache, 0));
    for (int i = 0; i < 3 * ST_CACHE_HALF_LIFE; i++) st_cache_age(&w.cache);
    for (uint32_t id = 1; id < IDS; id++) use_counted(&w, id);
    assert_false(st_cache_has(&w.cache, 0));
    close_world(&w);
}

// A cyclic scan finds all but what passes through one entry.
static void a_scan_keeps_what_fits(void **state) {
    (void)state;
    struct world w = open_world();
    for (size_t round = 0; round < 5; round++) {
        size_t found = 0;
        for (uint32_t id = 0; id < IDS; id++) found += use(&w, id, ST_EVICT_FIRST);
        assert_in_range(found, round ? ENTRIES - 1 : 0, round ? ENTRIES : 0);
    }
    close_world(&w);
}

static void what_is_held_stays(void **state) {
    (void)state;
    struct world w = open_world();
    for (uint32_t id = 0; id < ENTRIES; id++) assert_int_not_equal(take(&w, id), ST_CACHE_NONE);
    assert_int_equal(take(&w, ENTRIES), ST_CACHE_NONE);
    int32_t again = take(&w, 3); // taken twice, held once
    st_cache_give(&w.cache, again, ST_EVICT_LAST);
    st_cache_give(&w.cache, again, ST_EVICT_LAST);
    assert_false(use(&w, ENTRIES, ST_EVICT_LAST));
    assert_false(st_cache_has(&w.cache, 3));
    for (uint32_t id = 0; id < ENTRIES; id++) assert_int_equal(st_cache_has(&w.cache, id), id != 3);
    st_cache_give_all(&w.cache); // what nobody has waited for may be damaged: it is forgotten
    for (uint32_t id = 0; id < IDS; id++)
        assert_int_equal(st_cache_has(&w.cache, id), id == ENTRIES);
    for (uint32_t id = 20; id < 20 + ENTRIES; id++)
        assert_int_not_equal(take(&w, id), ST_CACHE_NONE);
    close_world(&w);
}

static void what_failed_is_not_kept(void **state) {
    (void)state;
    struct world w = open_world();
    bool fresh;
    assert_int_equal(truncate(w.path, 5 * entry_bytes), 0);
    for (int i = 0; i < 3; i++) {
        int32_t entry = take(&w, 9);
        assert_int_equal(st_cache_wait(&w.cache, entry, &fresh), STINT_E_IO);
        assert_false(st_cache_has(&w.cache, 9));
    }
    int32_t entry = take(&w, 9); // given back before it failed
    st_cache_give(&w.cache, entry, ST_EVICT_FIRST);
    assert_false(use(&w, 4, ST_EVICT_LAST));
    entry = take(&w, 4);
    assert_int_equal(st_cache_wait(&w.cache, entry, &fresh), STINT_OK);
    assert_false(fresh);
    st_cache_discard(&w.cache, entry);
    assert_false(st_cache_has(&w.cache, 4));
    close_world(&w);
}

// Some entries hold something, some nothing yet, some are on their way.
static void what_shrank_holds_less_until_it_grows(void **state) {
    (void)state;
    for (uint32_t n_used = 0; n_used <= ENTRIES; n_used++) {
        struct world w = open_world();
        uint32_t n = 1 + n_used / 2, found = 0;
        for (uint32_t id = 0; id < n_used; id++) {
            int32_t entry = take(&w, id);
            st_cache_give(&w.cache, entry, id % 2 ? ST_EVICT_FIRST : ST_EVICT_LAST);
        }
        st_cache_resize(&w.cache, n);
        for (uint32_t id = 0; id < IDS; id++) {
            if (!st_cache_has(&w.cache, id)) continue;
            bool fresh;
            int32_t entry = take(&w, id);
            assert_int_equal(st_cache_wait(&w.cache, entry, &fresh), STINT_OK);
            st_cache_give(&w.cache, entry, ST_EVICT_LAST);
            found++;
        }
        assert_int_equal(found, n_used < n ? n_used : n);
        for (size_t step = 0; step < 100; step++)
            use(&w, (uint32_t)ts_random_below(IDS),
                ts_random_below(2) ? ST_EVICT_LAST : ST_EVICT_FIRST);
        for (uint32_t id = 0; id < n; id++) assert_int_not_equal(take(&w, id), ST_CACHE_NONE);
        assert_int_equal(take(&w, n), ST_CACHE_NONE);
        for (uint32_t id = 0; id < n; id++)
            assert_int_equal(st_cache_wait(&w.cache, take(&w, id), &(bool){false}), STINT_OK);
        st_cache_give_all(&w.cache);
        st_cache_resize(&w.cache, n);
        for (uint32_t id = 0; id < IDS; id++) assert_int_equal(st_cache_has(&w.cache, id), id < n);
        st_cache_resize(&w.cache, ENTRIES);
        for (uint32_t id = 0; id < ENTRIES; id++) assert_int_not_equal(take(&w, id), ST_CACHE_NONE);
        assert_int_equal(take(&w, ENTRIES), ST_CACHE_NONE);
        close_world(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_fill_it),
        cmocka_unit_test(what_cannot_be_read_does_not_fill_it),
        cmocka_unit_test(what_was_used_last_stays),
        cmocka_unit_test(what_is_used_often_stays),
        cmocka_unit_test(a_scan_keeps_what_fits),
        cmocka_unit_test(what_is_held_stays),
        cmocka_unit_test(what_failed_is_not_kept),
        cmocka_unit_test(what_shrank_holds_less_until_it_grows),
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        entry_bytes = kinds[i].entry_bytes;
        n_loads = kinds[i].n_loads;
        failed |= cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}

// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"
#include "support/support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

struct layout {
    unsigned char *bytes;
    double *numbers;
    uint32_t *nothing, *words;
};

static void lay_out(struct st_arena *arena, struct layout *layout) {
    layout->bytes = ST_TAKE(arena, unsigned char, 3);
    layout->numbers = ST_TAKE(arena, double, 9);
    layout->nothing = ST_TAKE(arena, uint32_t, 0);
    layout->words = ST_TAKE(arena, uint32_t, 17);
}

static void arena_measured_size_is_the_size_that_carving_needs(void **state) {
    (void)state;
    struct layout layout;
    struct st_arena measure = st_arena_measure(), arena;
    lay_out(&measure, &layout);
    assert_null(layout.bytes);
    assert_null(layout.words);
    assert_int_equal(st_arena_check(&measure, "x"), STINT_OK);
    assert_int_equal(st_arena_open(&arena, measure.used), STINT_OK);
    lay_out(&arena, &layout);
    assert_int_equal(st_arena_check(&arena, "x"), STINT_OK);
    assert_int_equal(arena.used, measure.used);
    assert_null(ST_TAKE(&arena, char, 1));
    assert_int_equal(st_arena_check(&arena, "the cache"), STINT_E_NOMEM);
    assert_non_null(strstr(stint_error_text(), "the cache"));
    st_arena_close(&arena);
    st_arena_close(&measure);
}

static void arena_gives_aligned_zeroed_disjoint_memory(void **state) {
    (void)state;
    struct layout layout;
    struct st_arena arena;
    assert_int_equal(st_arena_open(&arena, 4096), STINT_OK);
    lay_out(&arena, &layout);
    assert_int_equal((uintptr_t)layout.bytes % 64, 0);
    assert_int_equal((uintptr_t)layout.numbers % 64, 0);
    assert_int_equal((uintptr_t)layout.words % 64, 0);
    for (size_t i = 0; i < 17; i++) assert_int_equal(layout.words[i], 0);
    memset(layout.bytes, 0xff, 3);
    memset(layout.words, 0xff, 17 * sizeof *layout.words);
    for (size_t i = 0; i < 9; i++) assert_true(layout.numbers[i] == 0);
    st_arena_close(&arena);
}

static void arena_refuses_sizes_that_wrap_and_stays_refused(void **state) {
    (void)state;
    static const size_t sizes[][2] = {
        {SIZE_MAX, 2}, {SIZE_MAX / 2 + 1, 2}, {SIZE_MAX, 1}, {SIZE_MAX - 62, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct st_arena arena = st_arena_measure();
        assert_null(st_arena_take(&arena, sizes[i][0], sizes[i][1]));
        assert_int_equal(st_arena_check(&arena, "x"), STINT_E_NOMEM);
        assert_null(st_arena_take(&arena, 1, 1));
        assert_int_equal(arena.used, 0);
    }
    struct st_arena sum = st_arena_measure();
    st_arena_take(&sum, SIZE_MAX / 64 - 3, 64);
    assert_false(sum.overflow);
    st_arena_take(&sum, 256, 1);
    assert_true(sum.overflow);
}

static void arena_rewinding_gives_back_what_came_after_the_mark(void **state) {
    (void)state;
    struct st_arena arena;
    struct st_arena measure = st_arena_measure();
    ST_TAKE(&measure, unsigned char, 64);
    ST_TAKE(&measure, unsigned char, 192);
    assert_int_equal(st_arena_open(&arena, measure.used), STINT_OK);
    unsigned char *kept = ST_TAKE(&arena, unsigned char, 64);
    size_t mark = st_arena_mark(&arena);
    unsigned char *first = ST_TAKE(&arena, unsigned char, 192);
    st_arena_rewind(&arena, mark);
    st_arena_rewind(&arena, mark + 64); // beyond what is held: nothing happens
    assert_ptr_equal(ST_TAKE(&arena, unsigned char, 192), first);
    assert_true(first >= kept + 64);
    memset(first, 1, 192);
    st_arena_close(&arena);
}

static void arena_reports_memory_that_the_system_has_not(void **state) {
    (void)state;
    struct st_arena arena = {.used = 77};
    assert_int_equal(st_arena_open(&arena, SIZE_MAX / 4), STINT_E_NOMEM);
    assert_int_equal(arena.used, 77);
    ts_fail_allocation(1);
    assert_int_equal(st_arena_open(&arena, 64), STINT_E_NOMEM);
    assert_true(ts_allocation_failed());
    ts_fail_allocation(0);
}

static void large_arenas_are_whole_huge_pages(void **state) {
    (void)state;
    enum { HUGE = 2 << 20 };
    struct st_arena arena;
    assert_int_equal(st_arena_open(&arena, HUGE + 200), STINT_OK);
    assert_int_equal((uintptr_t)arena.base % HUGE, 0);
    assert_int_equal(arena.mapped, 2 * HUGE);
    memset(ST_TAKE(&arena, char, HUGE + 64), 1, HUGE + 64);
    assert_null(ST_TAKE(&arena, char, HUGE)); // mapped, but more than was asked for
    st_arena_close(&arena);
}

static void arena_of_no_bytes_opens_and_closes(void **state) {
    (void)state;
    struct st_arena arena;
    assert_int_equal(st_arena_open(&arena, 0), STINT_OK);
    st_arena_close(&arena);
    st_arena_close(&arena);
    assert_null(arena.base);
}

static void arena_forgets_whole_pages(void **state) {
    (void)state;
    enum { PAGE = 4096, BYTES = 8 * PAGE };
    struct st_arena arena;
    assert_int_equal(st_arena_open(&arena, BYTES + 64), STINT_OK);
    char *taken = ST_TAKE(&arena, char, BYTES);
    memset(taken, 1, BYTES);
    st_arena_forget(taken + 100, 3 * PAGE);
    for (size_t i = 0; i < BYTES; i++) assert_int_equal(taken[i], i < PAGE || i >= 3 * PAGE);
    st_arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_measured_size_is_the_size_that_carving_needs),
        cmocka_unit_test(arena_gives_aligned_zeroed_disjoint_memory),
        cmocka_unit_test(arena_refuses_sizes_that_wrap_and_stays_refused),
        cmocka_unit_test(arena_rewinding_gives_back_what_came_after_the_mark),
        cmocka_unit_test(arena_reports_memory_that_the_system_has_not),
        cmocka_unit_test(large_arenas_are_whole_huge_pages),
        cmocka_unit_test(arena_forgets_whole_pages),
        cmocka_unit_test(arena_of_no_bytes_opens_and_closes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

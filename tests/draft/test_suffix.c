// SPDX-License-Identifier: Apache-2.0
// The automaton against a search through the whole text.
#include "draft/suffix.h"

#include "base/arena.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { MAX = 400 };

static void open_suffix(struct st_suffix *s, struct st_arena *arena, size_t capacity) {
    struct st_arena measure = st_arena_measure();
    *s = (struct st_suffix){0};
    st_suffix_lay_out(s, capacity, &measure);
    assert_int_equal(st_arena_open(arena, measure.used), STINT_OK);
    st_suffix_lay_out(s, capacity, arena);
    assert_int_equal(st_arena_check(arena, "a test"), STINT_OK);
}

// The longest end of text [n] that also ends before n, and where it does so last.
static size_t search(const int32_t *text, size_t n, size_t *end) {
    size_t longest = 0;
    *end = 0;
    for (size_t at = n - 1; at > 0; at--) {
        size_t length = 0;
        while (length < at && text[at - 1 - length] == text[n - 1 - length]) length++;
        if (length <= longest) continue;
        longest = length;
        *end = at;
    }
    return longest;
}

static void assert_longest(const struct st_suffix *s) {
    size_t wanted_end, end, wanted = search(s->text, s->n, &wanted_end);
    size_t length = st_suffix_match(s, &end);
    assert_int_equal(length, wanted);
    if (length == 0) return;
    assert_true(end < s->n && end >= length);
    assert_memory_equal(s->text + end - length, s->text + s->n - length, length * sizeof *s->text);
    if (s->n <= ST_SUFFIX_WALK) assert_int_equal(end, wanted_end);
}

static void the_longest_match_is_found(void **state) {
    (void)state;
    struct st_suffix s;
    struct st_arena arena;
    open_suffix(&s, &arena, MAX);
    for (int round = 0; round < 60; round++) {
        size_t n = 1 + ts_random_below(round % 2 ? MAX : ST_SUFFIX_WALK);
        size_t alphabet = 1 + ts_random_below(round % 3 ? 4 : 200);
        int32_t stretch = (int32_t)ts_random_below(1 << 20);
        st_suffix_clear(&s);
        for (size_t i = 0; i < n; i++) {
            bool copies = i > 20 && ts_random_below(3) > 0; // a stretch of the text once more
            int32_t id = stretch + (int32_t)ts_random_below(alphabet);
            st_suffix_push(&s, copies ? s.text[i - 20] : id);
            assert_longest(&s);
        }
    }
    st_arena_close(&arena);
}

// The texts with the most states, and those with the most transitions.
static void the_worst_texts_have_room(void **state) {
    (void)state;
    struct st_suffix s;
    struct st_arena arena;
    open_suffix(&s, &arena, MAX);
    for (int kind = 0; kind < 3; kind++) {
        st_suffix_clear(&s);
        for (size_t i = 0; i < MAX; i++) {
            bool last = i + 1 == MAX;
            int32_t abbb = i > 0, abbbc = last ? 2 : i > 0;
            st_suffix_push(&s, kind == 0 ? abbb : kind == 1 ? abbbc : 7);
        }
        assert_true(s.n_states <= 2 * MAX + 1 && s.n_edges <= 3 * MAX + 1);
        assert_longest(&s);
    }
    st_arena_close(&arena);
}

static void a_cleared_one_knows_nothing(void **state) {
    (void)state;
    struct st_suffix s;
    struct st_arena arena;
    size_t end;
    open_suffix(&s, &arena, 8);
    for (int i = 0; i < 8; i++) st_suffix_push(&s, i % 2);
    assert_int_equal(st_suffix_match(&s, &end), 6);
    st_suffix_clear(&s);
    assert_int_equal(st_suffix_match(&s, &end), 0);
    st_suffix_push(&s, 1);
    assert_int_equal(st_suffix_match(&s, &end), 0);
    st_arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_match_is_found),
        cmocka_unit_test(the_worst_texts_have_room),
        cmocka_unit_test(a_cleared_one_knows_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

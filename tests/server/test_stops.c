// SPDX-License-Identifier: Apache-2.0
// Stop texts in a stream: whatever pieces an answer comes in, what is let through is the answer up
// to the first stop text.
#include "server/scheduler/stops.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static size_t certain(const char *stop, const char *text, bool *found) {
    return st_stops_certain(&stop, 1, text, strlen(text), found);
}

static void what_may_begin_a_stop_is_held_back(void **state) {
    (void)state;
    bool found;
    assert_int_equal(certain("END", "some text", &found), 9);
    assert_int_equal(certain("END", "some EN", &found), 5);
    assert_false(found);
    assert_int_equal(certain("END", "some EEN", &found), 6);
    assert_int_equal(certain("END", "some ENDING", &found), 5);
    assert_true(found);
    assert_int_equal(certain("aab", "aaa", &found), 1);
    assert_false(found);
    assert_int_equal(certain("\n\n", "a\nb\n\n", &found), 3);
    assert_true(found);
}

static void the_first_that_is_complete_counts(void **state) {
    (void)state;
    const char *stops[] = {"cd", "bcde"};
    bool found;
    assert_int_equal(st_stops_certain(stops, 2, "abcdef", 6, &found), 2);
    assert_true(found);
    assert_int_equal(st_stops_certain(stops, 2, "abcdf", 5, &found), 2);
    assert_true(found);
    assert_int_equal(st_stops_certain(stops, 2, "abc", 3, &found), 1);
    assert_false(found);
}

// Where a plain search finds the one that ends first in the whole text; of equals the longer.
static size_t searched(const char *const *stops, size_t n_stops, const char *text) {
    size_t first = strlen(text), first_end = SIZE_MAX;
    for (size_t i = 0; i < n_stops; i++) {
        const char *at = strstr(text, stops[i]);
        size_t begin = (size_t)(at - text), end = begin + strlen(stops[i]);
        if (!at || end > first_end || (end == first_end && begin > first)) continue;
        first = begin;
        first_end = end;
    }
    return first;
}

static void any_pieces_give_the_same(void **state) {
    (void)state;
    for (int round = 0; round < 3000; round++) {
        char text[40], stop[2][5], held[64], told[64];
        const char *stops[] = {stop[0], stop[1]};
        size_t n = 1 + ts_random_below(30), n_held = 0, n_told = 0;
        bool found = false;
        for (size_t i = 0; i < n; i++) text[i] = (char)('a' + ts_random_below(2));
        text[n] = 0;
        for (int i = 0; i < 2; i++) {
            size_t length = 1 + ts_random_below(4);
            for (size_t j = 0; j < length; j++) stop[i][j] = (char)('a' + ts_random_below(2));
            stop[i][length] = 0;
        }
        for (size_t at = 0, piece; at < n && !found; at += piece) {
            piece = 1 + ts_random_below(4);
            if (piece > n - at) piece = n - at;
            memcpy(held + n_held, text + at, piece);
            n_held += piece;
            size_t sure = st_stops_certain(stops, 2, held, n_held, &found);
            memcpy(told + n_told, held, sure);
            n_told += sure;
            n_held -= sure;
            memmove(held, held + sure, n_held);
        }
        if (!found) { // it ended for another reason
            memcpy(told + n_told, held, n_held);
            n_told += n_held;
        }
        size_t wanted = searched(stops, 2, text);
        if (n_told != wanted || memcmp(told, text, wanted) != 0)
            fail_msg("'%s' with '%s' and '%s': %zu bytes, expected %zu", text, stop[0], stop[1],
                     n_told, wanted);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_begin_a_stop_is_held_back),
        cmocka_unit_test(the_first_that_is_complete_counts),
        cmocka_unit_test(any_pieces_give_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

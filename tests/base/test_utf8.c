// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void well_formed_sequences_have_their_length(void **state) {
    (void)state;
    assert_int_equal(st_utf8_length("a", 1), 1);
    assert_int_equal(st_utf8_length("\xc3\xa9", 2), 2);
    assert_int_equal(st_utf8_length("\xe2\x96\x81x", 4), 3);
    assert_int_equal(st_utf8_length("\xf0\x9f\x98\x80", 4), 4);
    assert_int_equal(st_utf8_decode("\xf0\x9f\x98\x80", 4), 0x1f600);
    assert_int_equal(st_utf8_decode("\xe2\x96\x81", 3), 0x2581);
}

static void broken_ones_have_none(void **state) {
    (void)state;
    const char *const broken[] = {"\x80",
                                  "\xc0\x80",
                                  "\xe0\x80\x80",
                                  "\xed\xa0\x80", // a surrogate
                                  "\xf5\x80\x80\x80",
                                  "\xf4\x90\x80\x80",
                                  "\xff",
                                  "\xc3("};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        assert_int_equal(st_utf8_length(broken[i], strlen(broken[i])), 0);
    assert_int_equal(st_utf8_length("", 0), 0);
}

static void one_replacement_stands_for_a_maximal_prefix(void **state) {
    (void)state;
    assert_int_equal(st_utf8_broken("\xf0\x9f\x98x", 4), 3);
    assert_int_equal(st_utf8_broken("\xe2\x96", 2), 2);
    assert_int_equal(st_utf8_broken("\xed\xa0\x80", 3), 1);
    assert_int_equal(st_utf8_broken("\x80\x80", 2), 1);
}

static void only_beginnings_are_unfinished(void **state) {
    (void)state;
    assert_true(st_utf8_unfinished("\xf0\x9f", 2));
    assert_true(st_utf8_unfinished("\xc3", 1));
    assert_false(st_utf8_unfinished("\xc3\xa9", 2));
    assert_false(st_utf8_unfinished("\x80", 1));
    assert_false(st_utf8_unfinished("\xe0\x80", 2));
    assert_false(st_utf8_unfinished("", 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed_sequences_have_their_length),
        cmocka_unit_test(broken_ones_have_none),
        cmocka_unit_test(one_replacement_stands_for_a_maximal_prefix),
        cmocka_unit_test(only_beginnings_are_unfinished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Which added token is found where: leftmost, longest, with the white space it takes along.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tokenizer/added_tokens.h"

#include <stdio.h>
#include <string.h>

enum { LEFT = 1, RIGHT = 2, WORD = 4, NORMALIZED = 8, SPECIAL = 16 };

static struct stint_tokenizer *open_tokens(void) {
    static const struct {
        const char *text;
        int flags;
    } tokens[] = {
        {"<s>", SPECIAL},  {"<s>a", 0},    {"<s>abc", 0},   {"  ", 0},
        {"<l>", LEFT},     {"<r>", RIGHT}, {"foo", WORD},   {"foobar", 0},
        {"N", NORMALIZED}, {"<", 0},       {"\xc3\xa9", 0}, {"<b>", LEFT | RIGHT},
    };
    struct stint_tokenizer *t = NULL;
    assert_int_equal(st_tokenizer_new(1000, &t), STINT_OK);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        struct st_added added = {.text = (char *)tokens[i].text,
                                 .bytes = strlen(tokens[i].text),
                                 .id = (int32_t)i,
                                 .special = tokens[i].flags & SPECIAL,
                                 .normalized = tokens[i].flags & NORMALIZED,
                                 .lstrip = tokens[i].flags & LEFT,
                                 .rstrip = tokens[i].flags & RIGHT,
                                 .single_word = tokens[i].flags & WORD};
        assert_int_equal(st_tokenizer_add_token(t, &added), STINT_OK);
    }
    assert_int_equal(st_tokenizer_finish(t), STINT_OK);
    return t;
}

// Matches as "id:start-end" in order.
static void assert_found(bool normalized, bool plain, const char *text, const char *wanted) {
    struct stint_tokenizer *t = open_tokens();
    struct st_added_search search = {0};
    char got[256] = "";
    while (st_added_next(t, normalized, plain, text, strlen(text), &search))
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d:%zu-%zu", *got ? " " : "",
                 (int)search.id, search.start, search.end);
    assert_string_equal(got, wanted);
    st_tokenizer_close(t);
}

static void the_longest_of_those_that_begin_first_is_taken(void **state) {
    (void)state;
    assert_found(false, false, "<s>", "0:0-3");
    assert_found(false, false, "x<s>ab", "1:1-5");
    assert_found(false, false, "<s>abc", "2:0-6");
    assert_found(false, false, "<s<s>", "9:0-1 0:2-5");
    assert_found(false, false, "\xc3\xa9\xc3", "10:0-2");
    assert_found(false, false, "", "");
}

static void white_space_is_taken_along(void **state) {
    (void)state;
    assert_found(false, false, "a <l>", "4:1-5");
    assert_found(false, false, "a\xe2\x80\x83<l> b", "4:1-7");
    assert_found(false, false, "<r>\n\xc2\xa0 b", "5:0-7");
    assert_found(false, false, "<l> <b> <l>", "4:0-3 11:3-8 4:8-11");
}

static void a_match_that_its_flags_forbid_is_passed_over_whole(void **state) {
    (void)state;
    assert_found(false, false, "a foo.", "6:2-5");
    assert_found(false, false,
                 "afoo foos foo_ \xc3\xa8"
                 "foo",
                 "");
    assert_found(false, false, "foobar", "7:0-6");
    assert_found(false, true, "<s>x<s>a", "1:4-8"); // "<" within "<s>" is not looked at again
}

static void normalized_ones_are_found_in_the_normalized_text_alone(void **state) {
    (void)state;
    assert_found(false, false, "N", "");
    assert_found(true, false, "N<s>", "8:0-1");
}

// Thousands that share their first bytes: the search must not walk through all of them.
static void many_tokens_with_one_prefix_are_told_apart(void **state) {
    (void)state;
    struct stint_tokenizer *t = NULL;
    struct st_added_search search = {0};
    char text[32];
    assert_int_equal(st_tokenizer_new(5000, &t), STINT_OK);
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "[PAD%d]", i);
        struct st_added added = {.text = text, .bytes = strlen(text), .id = i};
        assert_int_equal(st_tokenizer_add_token(t, &added), STINT_OK);
    }
    assert_int_equal(st_tokenizer_finish(t), STINT_OK);
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "[PAD[PAD%d]", i);
        search = (struct st_added_search){0};
        assert_true(st_added_next(t, false, false, text, strlen(text), &search));
        assert_int_equal(search.id, i);
        assert_int_equal(search.start, 4);
    }
    st_tokenizer_close(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_of_those_that_begin_first_is_taken),
        cmocka_unit_test(white_space_is_taken_along),
        cmocka_unit_test(a_match_that_its_flags_forbid_is_passed_over_whole),
        cmocka_unit_test(normalized_ones_are_found_in_the_normalized_text_alone),
        cmocka_unit_test(many_tokens_with_one_prefix_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// The classes of Oniguruma under PCRE2, and patterns that would run forever.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/expect.h"
#include "tokenizer/regex.h"

#include <stdlib.h>

static struct st_regex *open_pattern(const char *pattern) {
    struct st_regex *regex = NULL;
    if (st_regex_open(pattern, strlen(pattern), &regex) != STINT_OK)
        fail_msg("%s", st_error_text());
    return regex;
}

// Where the first match lies; start -1: nowhere.
static void assert_match(const char *pattern, const char *text, int wanted_start, int wanted_end) {
    size_t start, end, n = strlen(text);
    struct st_regex *regex = open_pattern(pattern);
    assert_int_equal(st_regex_find(regex, text, n, 0, &start, &end), STINT_OK);
    assert_int_equal(start, wanted_start < 0 ? (int)n : wanted_start);
    if (wanted_start >= 0) assert_int_equal(end, wanted_end);
    st_regex_close(regex);
}

static void white_space_is_unicodes_property(void **state) {
    (void)state;
    assert_match("\\s+", "a\xe2\x80\x83\xc2\x85 b", 1, 7);
    assert_match("\\s", "a\xe1\xa0\x8e", -1, 0); // U+180E is none
    assert_match("[\\s]", "a\xe3\x80\x80", 1, 4);
    assert_match("\\S", " \xe1\xa0\x8e", 1, 4);
}

static void words_have_marks_and_digits(void **state) {
    (void)state;
    assert_match("\\w+", "-e\xcc\x81_1-", 1, 6);
    assert_match("\\W", "e\xcc\x81-", 3, 4);
    assert_match("\\w", "\xe2\x91\xa0", -1, 0); // a circled digit is no decimal one
    assert_match("\\w", "-\xc2\xbd", 1, 3);     // but a half is a word in Latin-1
    assert_match("[^\\w\\s]+", " a!? ", 2, 4);
    assert_match("[[:digit:]x]+", "ab12x", 2, 5);
    assert_match("[]a]+", "x]a", 1, 3);
    assert_match("\\h+", "xyzaf9", 3, 6); // Oniguruma's: hexadecimal digits
}

static void a_dollar_is_the_end_of_any_line(void **state) {
    (void)state;
    assert_match("b$", "ab\ncb", 1, 2);
    assert_match("^c", "ab\ncb", 3, 4);
    assert_match("a.b", "a\nb a\rb", 4, 7); // \r ends no line
    // Found at the beginning, which PCRE2 10.42 skips when it looks for lines.
    assert_match("^(aa(.|))[ab]*!", "aa!", 0, 3);
    assert_match("[^]ab!\n]|^aa(.|)[ab]*!", "b\naa!", 2, 5);
}

static void what_cannot_be_compiled_is_refused(void **state) {
    (void)state;
    static const char *const patterns[] = {"(", "[", "a{2,1}", "\\C", "(?<=a+)b", "\\p{Nope}"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct st_regex *regex = NULL;
        assert_failure(st_regex_open(patterns[i], strlen(patterns[i]), &regex), STINT_E_UNSUPPORTED,
                       "regular expression");
        assert_null(regex);
    }
}

static void a_pattern_that_never_ends_is_stopped(void **state) {
    (void)state;
    char text[64];
    size_t start, end;
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 'b';
    struct st_regex *regex = open_pattern("(a|aa|a)+$");
    assert_failure(st_regex_find(regex, text, sizeof text, 0, &start, &end), STINT_E_LIMIT,
                   "gives up");
    st_regex_close(regex);
}

// \K in a group that a lookaround calls moves a match's start before the search position or past
// its end. PCRE2 10.42 compiles such patterns; their matches must not reach the callers.
static void a_match_outside_its_bounds_is_refused(void **state) {
    (void)state;
    static const char *const patterns[] = {
        "(?<=(?1))b(?(DEFINE)(\\K[ab]))", "b(?=(?1))(?(DEFINE)([ab]\\K))",
        "(?<=(?1))(?(DEFINE)(\\K[ab]))", "(?=(?1))(?(DEFINE)([ab]\\K))"};
    static const char text[] = "abbab";
    enum { N = sizeof text - 1 };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct st_regex *regex = open_pattern(patterns[i]);
        size_t n_refused = 0;
        for (size_t from = 0, start, end; from < N; from++) {
            stint_status status = st_regex_find(regex, text, N, from, &start, &end);
            if (status != STINT_OK) {
                assert_failure(status, STINT_E_FORMAT, "\\K");
                n_refused++;
            } else if (from > start || start > end || end > N) {
                fail_msg("%s from %zu: [%zu, %zu)", patterns[i], from, start, end);
            }
        }
        assert_true(n_refused > 0);
        st_regex_close(regex);
    }
    assert_match("a\\Kb", "bab", 2, 3); // elsewhere \K keeps its meaning
}

// More state than the compiled code's stack holds: the interpreter takes over.
// PCRE2's code read outside of its tables here.
static void a_search_from_within_a_character_begins_at_the_next(void **state) {
    (void)state;
    static const char text[] = "ab\xd4\xa4\xdc\xb0";
    enum { N = sizeof text - 1 };
    struct st_regex *regex = open_pattern("_\\{2,3}?Ha~}|\x1cX|\\b");
    for (size_t from = 0; from <= N; from++) {
        size_t start, end;
        assert_int_equal(st_regex_find(regex, text, N, from, &start, &end), STINT_OK);
        assert_int_equal(start, from == 0 ? 0 : from <= 4 ? 4 : N); // U+0730 is a mark
        assert_true(start == N || end == start);
    }
    st_regex_close(regex);
}

static void a_long_match_of_a_group_works(void **state) {
    (void)state;
    enum { N = 100000 };
    char *text = malloc(N);
    size_t start, end;
    assert_non_null(text);
    for (size_t i = 0; i < N; i++) text[i] = i % 2 ? 'a' : 'b';
    struct st_regex *regex = open_pattern("(?:(a)|(b))+");
    assert_int_equal(st_regex_find(regex, text, N, 0, &start, &end), STINT_OK);
    assert_int_equal(start, 0);
    assert_int_equal(end, N);
    st_regex_close(regex);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(white_space_is_unicodes_property),
        cmocka_unit_test(words_have_marks_and_digits),
        cmocka_unit_test(a_dollar_is_the_end_of_any_line),
        cmocka_unit_test(what_cannot_be_compiled_is_refused),
        cmocka_unit_test(a_long_match_of_a_group_works),
        cmocka_unit_test(a_pattern_that_never_ends_is_stopped),
        cmocka_unit_test(a_match_outside_its_bounds_is_refused),
        cmocka_unit_test(a_search_from_within_a_character_begins_at_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

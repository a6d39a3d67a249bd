// SPDX-License-Identifier: Apache-2.0
// Normalizing and splitting, step by step: what each behaviour of the tokenizers library leaves.
#include "tokenizer/normalize.h"
#include "tokenizer/pretokenize.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <utf8proc.h>

// The pieces of `text`, separated by '|'.
static const char *pieces_of(struct st_pretokenizer step, const char *pattern, const char *text) {
    static char out[256];
    struct st_bytes bytes = {0};
    struct st_pieces pieces = {0};
    if (pattern) assert_int_equal(st_regex_open(pattern, strlen(pattern), &step.regex), STINT_OK);
    assert_int_equal(st_bytes_append(&bytes, text, strlen(text)), STINT_OK);
    assert_int_equal(st_pretokenize(&step, 1, true, &bytes, &pieces), STINT_OK);
    size_t used = 0;
    for (size_t i = 0; i < pieces.count; i++) {
        size_t n = pieces.spans[i].end - pieces.spans[i].start;
        memcpy(out + used, pieces.text.data + pieces.spans[i].start, n);
        used += n;
        out[used++] = '|';
    }
    out[used] = 0;
    st_pieces_free(&pieces);
    st_pretokenizer_close(&step);
    return out;
}

static const char *split(enum st_split behavior, bool invert, const char *pattern,
                         const char *text) {
    return pieces_of((struct st_pretokenizer){.kind = ST_PRETOKENIZE_SPLIT,
                                              .behavior = behavior,
                                              .invert = invert},
                     pattern, text);
}

static void matches_go_where_the_behaviour_says(void **state) {
    (void)state;
    const char *text = "the-final--countdown";
    assert_string_equal(split(ST_SPLIT_ISOLATED, false, "-", text), "the|-|final|-|-|countdown|");
    assert_string_equal(split(ST_SPLIT_REMOVED, false, "-", text), "the|final|countdown|");
    assert_string_equal(split(ST_SPLIT_MERGED_WITH_PREVIOUS, false, "-", text),
                        "the-|final-|-|countdown|");
    assert_string_equal(split(ST_SPLIT_MERGED_WITH_NEXT, false, "-", text),
                        "the|-final|-|-countdown|");
    assert_string_equal(split(ST_SPLIT_CONTIGUOUS, false, "-", text), "the|-|final|--|countdown|");
    assert_string_equal(split(ST_SPLIT_REMOVED, true, "-", text), "-|-|-|");
    assert_string_equal(split(ST_SPLIT_MERGED_WITH_NEXT, false, "-", "a--"), "a|-|-|");
    assert_string_equal(split(ST_SPLIT_ISOLATED, false, "x*", "axb"), "a|x|b|");
    assert_string_equal(split(ST_SPLIT_ISOLATED, false, "-", ""), "");
}

static void white_space_is_unicodes(void **state) {
    (void)state;
    assert_string_equal(split(ST_SPLIT_REMOVED, false, "\\s+",
                              "a\xc2\xa0 b\xe3\x80\x80"
                              "c\xc2\x85"
                              "d"),
                        "a|b|c|d|");
    assert_string_equal(split(ST_SPLIT_REMOVED, false, "\\s",
                              "a\xe1\xa0\x8e"
                              "b"),
                        "a\xe1\xa0\x8e"
                        "b|");
    assert_string_equal(split(ST_SPLIT_ISOLATED, false, "[^\\s]+", "ab c"), "ab| |c|");
}

static void prefixes_and_marks(void **state) {
    (void)state;
    struct st_pretokenizer prefix = {.kind = ST_PRETOKENIZE_PREFIX, .prefix = ST_PREFIX_ALWAYS};
    assert_string_equal(pieces_of(prefix, NULL, "a b"), " a b|");
    assert_string_equal(pieces_of(prefix, NULL, " a"), " a|");
    struct st_pretokenizer mark = {.kind = ST_PRETOKENIZE_METASPACE, .prefix = ST_PREFIX_FIRST};
    assert_string_equal(pieces_of(mark, NULL, "a b"), "\xe2\x96\x81"
                                                      "a\xe2\x96\x81"
                                                      "b|");
    assert_string_equal(pieces_of(mark, NULL, " a"), "\xe2\x96\x81"
                                                     "a|");
    mark.prefix = ST_PREFIX_NEVER;
    assert_string_equal(pieces_of(mark, NULL, "a b"), "a\xe2\x96\x81"
                                                      "b|");
}

static const char *normalized(struct st_normalizer step, const char *text) {
    static char out[256];
    struct st_bytes bytes = {0};
    assert_int_equal(st_bytes_append(&bytes, text, strlen(text)), STINT_OK);
    assert_int_equal(st_normalize(&step, 1, &bytes), STINT_OK);
    memcpy(out, bytes.data ? bytes.data : "", bytes.count);
    out[bytes.count] = 0;
    st_bytes_free(&bytes);
    return out;
}

static void texts_are_normalized(void **state) {
    (void)state;
    struct st_normalizer nfc = {.kind = ST_NORMALIZE_UNICODE,
                                .options = UTF8PROC_STABLE | UTF8PROC_COMPOSE};
    assert_string_equal(normalized(nfc, "e\xcc\x81"), "\xc3\xa9");
    struct st_normalizer strip = {.kind = ST_NORMALIZE_STRIP, .left = true, .right = true};
    assert_string_equal(normalized(strip, " \xc2\xa0"
                                          "a b\t"),
                        "a b");
    assert_string_equal(normalized(strip, "  "), "");
    strip.right = false;
    assert_string_equal(normalized(strip, " a "), "a ");
    struct st_normalizer squeeze = {.kind = ST_NORMALIZE_SQUEEZE};
    assert_string_equal(normalized(squeeze, "  a   b  "), "a b");
    char from[] = "ab", to[] = "x";
    struct st_normalizer replace = {
        .kind = ST_NORMALIZE_REPLACE, .from = from, .to = to, .from_bytes = 2, .to_bytes = 1};
    assert_string_equal(normalized(replace, "ababcab"), "xxcx");
    struct st_normalizer prepend = {.kind = ST_NORMALIZE_PREPEND, .to = to, .to_bytes = 1};
    assert_string_equal(normalized(prepend, "a"), "xa");
    assert_string_equal(normalized(prepend, ""), "");
}

static void damaged_character_maps_are_refused(void **state) {
    (void)state;
    char short_map[] = "\1\0\0", huge[] = "\xfc\xff\xff\x7f....\0";
    struct st_normalizer step = {.kind = ST_NORMALIZE_CHARSMAP, .from = short_map, .from_bytes = 3};
    assert_int_equal(st_normalizer_check(&step), STINT_E_FORMAT);
    step.from = huge;
    step.from_bytes = sizeof huge - 1;
    assert_int_equal(st_normalizer_check(&step), STINT_E_FORMAT);
}

static void bad_patterns_name_the_place(void **state) {
    (void)state;
    struct st_regex *regex = NULL;
    assert_int_equal(st_regex_open("a(b", 3, &regex), STINT_E_UNSUPPORTED);
    assert_null(regex);
    assert_non_null(strstr(st_error_text(), "parenthes"));
}

// A hostile file's: its matches begin before the search position or end before they begin.
static void matches_outside_their_bounds_split_nothing(void **state) {
    (void)state;
    static const char *const patterns[] = {"(?<=(?1))b(?(DEFINE)(\\K[ab]))",
                                           "b(?=(?1))(?(DEFINE)([ab]\\K))"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        char to[] = "x";
        struct st_pretokenizer split_step = {.kind = ST_PRETOKENIZE_SPLIT};
        struct st_normalizer replace = {.kind = ST_NORMALIZE_REPLACE, .to = to, .to_bytes = 1};
        struct st_bytes bytes = {0};
        struct st_pieces pieces = {0};
        const char *pattern = patterns[i];
        assert_int_equal(st_regex_open(pattern, strlen(pattern), &split_step.regex), STINT_OK);
        assert_int_equal(st_bytes_append(&bytes, "abbab", 5), STINT_OK);
        assert_int_equal(st_pretokenize(&split_step, 1, true, &bytes, &pieces), STINT_E_FORMAT);
        replace.regex = split_step.regex;
        st_bytes_free(&bytes);
        assert_int_equal(st_bytes_append(&bytes, "abbab", 5), STINT_OK);
        assert_int_equal(st_normalize(&replace, 1, &bytes), STINT_E_FORMAT);
        st_bytes_free(&bytes);
        st_pieces_free(&pieces);
        st_pretokenizer_close(&split_step);
    }
}

// Each match alone stays far below the limit of one match, and all together take ten times that
// limit: a text has its effort once.
static void many_matches_share_one_effort(void **state) {
    (void)state;
    enum { N = 300 };
    static const char pattern[] = "a*a*a*b|a";
    char text[N];
    memset(text, 'a', N);
    struct st_pretokenizer step = {.kind = ST_PRETOKENIZE_SPLIT};
    struct st_normalizer replace = {.kind = ST_NORMALIZE_REPLACE, .to = "x", .to_bytes = 1};
    assert_int_equal(st_regex_open(pattern, sizeof pattern - 1, &step.regex), STINT_OK);
    replace.regex = step.regex;
    struct st_bytes bytes = {0};
    struct st_pieces pieces = {0};
    assert_int_equal(st_bytes_append(&bytes, text, N), STINT_OK);
    assert_int_equal(st_pretokenize(&step, 1, true, &bytes, &pieces), STINT_E_LIMIT);
    st_pieces_free(&pieces);
    assert_int_equal(st_bytes_append(&bytes, text, N), STINT_OK);
    assert_int_equal(st_normalize(&replace, 1, &bytes), STINT_E_LIMIT);
    st_bytes_free(&bytes);
    // A short text has as much for each byte.
    assert_int_equal(st_bytes_append(&bytes, text, 10), STINT_OK);
    assert_int_equal(st_pretokenize(&step, 1, true, &bytes, &pieces), STINT_OK);
    assert_int_equal(pieces.count, 10);
    st_pieces_free(&pieces);
    st_pretokenizer_close(&step);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_go_where_the_behaviour_says),
        cmocka_unit_test(white_space_is_unicodes),
        cmocka_unit_test(prefixes_and_marks),
        cmocka_unit_test(texts_are_normalized),
        cmocka_unit_test(damaged_character_maps_are_refused),
        cmocka_unit_test(bad_patterns_name_the_place),
        cmocka_unit_test(matches_outside_their_bounds_split_nothing),
        cmocka_unit_test(many_matches_share_one_effort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

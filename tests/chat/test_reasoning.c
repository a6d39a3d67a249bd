// SPDX-License-Identifier: Apache-2.0
// Texts with and without marks, cut at every place, against a reading of the whole.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "chat/reasoning.h"
#include "support/support.h"

#include <string.h>

static bool is_blank(char c) {
    return c != 0 && strchr(" \t\r\n", c) != NULL;
}

// What a reader who sees the whole text makes of it: reasoning [from, to) and the answer's begin.
static void read_whole(const char *text, bool inside, size_t *from, size_t *to, size_t *answer) {
    size_t n = strlen(text), at = 0;
    *from = *to = *answer = 0;
    if (!inside) {
        at = strspn(text, " \t\r\n");
        if (strncmp(text + at, "<think>", 7) != 0) return;
        at += 7;
    }
    const char *end = strstr(text + at, "</think>");
    *answer = end != NULL ? (size_t)(end - text) + 8 : n;
    *answer += strspn(text + *answer, " \t\r\n");
    *to = end != NULL ? (size_t)(end - text) : n;
    *from = at;
    while (*from < *to && is_blank(text[*from])) ++*from;
    while (*to > *from && is_blank(text[*to - 1])) --*to;
}

static struct st_reasoning begin(bool inside) {
    return (struct st_reasoning){.phase = inside ? ST_REASONING_INSIDE : ST_REASONING_BEFORE};
}

static void assert_reads(const struct st_reasoning *r, const char *text, bool inside) {
    size_t from, to, answer;
    read_whole(text, inside, &from, &to, &answer);
    assert_int_equal(r->phase, ST_REASONING_OVER);
    assert_int_equal(r->to - r->from, to - from);
    if (to > from) assert_int_equal(r->from, from);
    assert_int_equal(r->answer, answer);
    assert_int_equal(st_reasoning_before_answer(r, strlen(text)), answer);
}

static void texts_as_models_write_them(void **state) {
    static const char *const texts[] = {
        "<think>\nWell.\n</think>\n\nYes.",
        "\n<think>Well.</think>Yes.",
        "<think>\n\n</think>\n\nYes.",
        "<think></think>",
        "<think>",
        "<think>Well, cut off",
        "<think>Well </thi",
        "Yes.",
        "<thinking>is no mark</thinking>",
        "<thi",
        "",
        " \n ",
        "Yes. <think>later</think>",
        "<think>a<b </ </think </</think>b",
        "<think>caf\xc3\xa9\n </think> \xc3\xa9t\xc3\xa9",
        "<think>one</think>two</think>three<think>four</think>",
        "Well.\n</think>\n\nYes.",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int inside = 0; inside < 2; inside++)
            for (size_t cut = 0; cut <= strlen(texts[i]); cut++) {
                struct st_reasoning r = begin(inside);
                st_reasoning_push(&r, texts[i], cut);
                st_reasoning_push(&r, texts[i] + cut, strlen(texts[i]) - cut);
                st_reasoning_end(&r);
                assert_reads(&r, texts[i], inside);
            }
}

// What was certain stays so, and no byte is both reasoning and answer.
static void random_texts_in_random_pieces(void **state) {
    static const char *const words[] = {"<think>", "</think>", "<",  "/", "</", "think>", "<think",
                                        "</think", " ",        "\n", "a", "b.", "\t",     "<<"};
    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[160] = "";
        for (size_t k = ts_random_below(14); k > 0; k--)
            strcat(text, words[ts_random_below(sizeof words / sizeof *words)]);
        bool inside = ts_random_below(2);
        struct st_reasoning r = begin(inside), before = r;
        for (size_t at = 0, n = strlen(text); at < n;) {
            size_t piece = 1 + ts_random_below(n - at);
            st_reasoning_push(&r, text + at, piece);
            at += piece;
            assert_int_equal(r.n, at);
            assert_true(r.to >= before.to && r.phase >= before.phase);
            if (before.begun) assert_int_equal(r.from, before.from);
            if (r.phase == ST_REASONING_OVER) assert_true(r.to <= r.answer && r.answer < at);
            before = r;
        }
        st_reasoning_end(&r);
        assert_reads(&r, text, inside);
    }
}

static void no_reasoning_is_all_answer(void **state) {
    (void)state;
    struct st_reasoning r = {0};
    st_reasoning_push(&r, "<think>a</think>", 16);
    st_reasoning_end(&r);
    assert_int_equal(r.phase, ST_REASONING_NONE);
    assert_int_equal(st_reasoning_before_answer(&r, 16), 0);
}

static void blanks_in_front_are_bounded(void **state) {
    (void)state;
    struct st_reasoning r = begin(false);
    for (int i = 0; i < 64; i++) st_reasoning_push(&r, "\n", 1);
    assert_int_equal(r.phase, ST_REASONING_BEFORE);
    st_reasoning_push(&r, "\n", 1);
    assert_int_equal(r.phase, ST_REASONING_OVER);
    assert_int_equal(r.answer, 0);
}

static void marks_of_families_are_read_as_ours(void **state) {
    (void)state;
    const struct st_renamed_mark *marks = st_reasoning_renamed("{# [THINK] #}");
    assert_string_equal(st_reasoning_rename(marks, "[THINK]", 7)->as, "<think>");
    assert_string_equal(st_reasoning_rename(marks, "[/THINK]", 8)->as, "</think>");
    assert_null(st_reasoning_rename(marks, "[/THINK] ", 9));
    assert_null(st_reasoning_rename(marks, "<response>", 10));
    marks = st_reasoning_renamed("{# <response> #}");
    assert_string_equal(st_reasoning_rename(marks, "<response>", 10)->as, "");
    assert_string_equal(st_reasoning_rename(marks, "</response>", 11)->as, "");
    marks = st_reasoning_renamed("{# <|channel> #}");
    assert_string_equal(st_reasoning_rename(marks, "<|channel>", 10)->title, "thought\n");
    assert_null(st_reasoning_rename(marks, "<channel|>", 10)->title);
    assert_null(st_reasoning_renamed("{# <think> #}"));
    assert_null(st_reasoning_renamed(NULL));
    assert_null(st_reasoning_rename(NULL, "[THINK]", 7));
}

static void titles_are_part_of_their_mark(void **state) {
    const char *title = "thought\n";
    (void)state;
    assert_int_equal(st_reasoning_title(&title, "thou", 4), 4);
    assert_int_equal(st_reasoning_title(&title, "", 0), 0);
    assert_int_equal(st_reasoning_title(&title, "ght\nWell", 8), 4);
    assert_null(title);
    assert_int_equal(st_reasoning_title(&title, "thought", 7), 0);
    title = "thought\n";
    assert_int_equal(st_reasoning_title(&title, "plan\n", 5), 0);
    assert_null(title);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_of_families_are_read_as_ours),
        cmocka_unit_test(titles_are_part_of_their_mark),
        cmocka_unit_test(texts_as_models_write_them),
        cmocka_unit_test(random_texts_in_random_pieces),
        cmocka_unit_test(no_reasoning_is_all_answer),
        cmocka_unit_test(blanks_in_front_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

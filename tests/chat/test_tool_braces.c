// SPDX-License-Identifier: Apache-2.0
// Calls in braces (Gemma 4): values of every kind, what is no call, and answers cut off anywhere.
#include "support/calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define Q        "<|\"|>"
#define CALL(of) "<|tool_call>call:" of "<tool_call|>"

static const char tools[] = "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]";

static const char *calls(const char *answer, size_t n) {
    static char text[TS_CALLS_TEXT];
    ts_calls("{# <|tool_call> #}", tools, answer, n, text);
    return text;
}

static void assert_calls(const char *answer, const char *wanted) {
    assert_string_equal(calls(answer, strlen(answer)), wanted);
}

static void values_of_every_kind_are_read(void **state) {
    (void)state;
    assert_calls(CALL("f{}"), "f({})|");
    assert_calls(CALL("f{a:1,b:-2.5e3,c:true,d:null}"),
                 "f({\"a\": 1, \"b\": -2500.0, \"c\": true, \"d\": null})|");
    assert_calls(CALL("f{a:" Q "x, {y}: \"z\"\n" Q "}"), "f({\"a\": \"x, {y}: \\\"z\\\"\\n\"})|");
    assert_calls(CALL("f{a:[1,[" Q Q "]],b:{c:{d:" Q "e" Q "}}}"),
                 "f({\"a\": [1, [\"\"]], \"b\": {\"c\": {\"d\": \"e\"}}})|");
    assert_calls(CALL("f{" Q "a" Q ":1}"), "f({\"a\": 1})|");
    assert_calls(CALL("f{ a : 1 , b:word }"), "f({\"a\": 1, \"b\": \"word\"})|");
    assert_calls("Well.\n" CALL("f{a:1}") CALL("f{a:2}") " So.",
                 "f({\"a\": 1})f({\"a\": 2})|Well.\n So.");
}

static void what_is_no_call_stays_text(void **state) {
    static const char *const texts[] = {CALL("g{}"),         CALL("f"),         CALL("f{a}"),
                                        CALL("f{a:}"),       CALL("f{a:1 b}x"), CALL("f{a:1,,b:2}"),
                                        CALL("f{a:" Q "x}"), CALL("f{:1}"),     CALL("f{a:[1}")};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_string_equal(strchr(calls(texts[i], strlen(texts[i])), '|') + 1, texts[i]);
}

static void answers_may_end_anywhere(void **state) {
    static const char answer[] = CALL("f{a:[1,{b:" Q "x" Q "}],c:2}");
    (void)state;
    size_t closed = strlen(answer) - strlen("<tool_call|>");
    for (size_t n = 0; n <= strlen(answer); n++)
        assert_int_equal(calls(answer, n)[0] == 'f', n == closed || n == strlen(answer));
    char deep[400] = "<|tool_call>call:f{a:";
    memset(deep + strlen(deep), '[', 300);
    assert_int_equal(calls(deep, strlen(deep))[0], '|'); // deeper than anyone nests
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_every_kind_are_read),
        cmocka_unit_test(what_is_no_call_stays_text),
        cmocka_unit_test(answers_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

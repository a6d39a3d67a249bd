// SPDX-License-Identifier: Apache-2.0
// Arguments in Python's notation and in tags: every kind of value, and what is malformed.
#include "chat/tool_bodies.h"
#include "support/calls.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PYTHON "{# <|tool_call_start|> #}"
#define TAGGED "{# <function= #}"
#define KEYED  "{# <arg_key> #}"

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"s\":{\"type\":\"string\"},\"m\":{\"type\":[\"string\",\"null\"]},"
    "\"n\":{\"type\":\"number\"}}}}},{\"name\":\"get.it-2\"}]";

struct answer_case {
    const char *template, *answer, *expected;
};

#define CALL(value) "<|tool_call_start|>[f(x=" value ")]<|tool_call_end|>"

static const struct answer_case cases[] = {
    // values
    {PYTHON, CALL("1"), "f({\"x\": 1})|"},
    {PYTHON, CALL("-2.5e3"), "f({\"x\": -2500.0})|"},
    {PYTHON, CALL("True"), "f({\"x\": true})|"},
    {PYTHON, CALL("false"), "f({\"x\": false})|"},
    {PYTHON, CALL("None"), "f({\"x\": null})|"},
    {PYTHON, CALL("'a'"), "f({\"x\": \"a\"})|"},
    {PYTHON, CALL("\"it's\""), "f({\"x\": \"it's\"})|"},
    {PYTHON, CALL("'it's (so)'"), "f({\"x\": \"it's (so)\"})|"}, // as a template may write it
    {PYTHON, CALL("'it\\'s\\n\\\\ \\u00e9\\ud83d\\ude00\\x41\\d'"),
     "f({\"x\": \"it's\\n\\\\ \xc3\xa9\xf0\x9f\x98\x80"
     "A\\\\d\"})|"},
    {PYTHON, CALL("[1, 'a', [], (2, 3), {'k': {\"l\": None}},]"),
     "f({\"x\": [1, \"a\", [], [2, 3], {\"k\": {\"l\": null}}]})|"},
    // calls
    {PYTHON, "Well. <|tool_call_start|>[f( a = 1 ,b=2 ), get.it-2()]<|tool_call_end|> Done.",
     "f({\"a\": 1, \"b\": 2})get.it-2({})|Well.  Done."},
    {PYTHON, "<|tool_call_start|>[f(a=1)]", "f({\"a\": 1})|"}, // cut off behind the calls
    {PYTHON, "<|tool_call_start|>f(a=1)<|tool_call_end|>", "f({\"a\": 1})|"},
    {PYTHON, "<|tool_call_start|>[{\"name\": \"f\", \"arguments\": {}}]<|tool_call_end|>",
     "f({})|"},
    {TAGGED,
     "<tool_call>\n<function=f>\n<parameter=s>\n12\n</parameter>\n<parameter=n>\n12\n</parameter>\n"
     "<parameter=m>\nnull\n</parameter>\n</function>\n</tool_call>",
     "f({\"s\": \"12\", \"n\": 12, \"m\": \"null\"})|"},
    {TAGGED,
     "<tool_call><function=f><parameter=o>{\"k\": [1, True]}</parameter><parameter=t>\n"
     "two\n\nlines\n</parameter></function></tool_call>",
     "f({\"o\": {\"k\": [1, true]}, \"t\": \"two\\n\\nlines\"})|"},
    {TAGGED, "Well.\n<function=f>\n</function>\n", "f({})|Well."}, // without the outer mark
    {KEYED,
     "<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>1</arg_value>\n<arg_key>n</arg_key>\n"
     "<arg_value>1</arg_value>\n</tool_call>\n<tool_call>get.it-2\n</tool_call>",
     "f({\"s\": \"1\", \"n\": 1})get.it-2({})|"},
    // what is no call stays text
    {PYTHON, CALL("y"), "|" CALL("y")},
    {PYTHON, CALL("[1 2]"), "|" CALL("[1 2]")},
    {PYTHON, CALL("{1: 2}"), "|" CALL("{1: 2}")},
    {PYTHON, CALL("'a"), "|" CALL("'a")},
    {PYTHON, CALL("'\\ud83d'"), "|" CALL("'\\ud83d'")},
    {PYTHON, CALL("'\xff'"), "|" CALL("'\xff'")},
    {PYTHON, "<|tool_call_start|>[f(1)]<|tool_call_end|>",
     "|<|tool_call_start|>[f(1)]<|tool_call_end|>"},
    {PYTHON, "<|tool_call_start|>[g(a=1)]<|tool_call_end|>",
     "|<|tool_call_start|>[g(a=1)]<|tool_call_end|>"},
    {PYTHON, "<|tool_call_start|>[]<|tool_call_end|>", "|<|tool_call_start|>[]<|tool_call_end|>"},
    {PYTHON, "<|tool_call_start|>[f(a=1)", "|<|tool_call_start|>[f(a=1)"},
    {TAGGED, "<tool_call><function=f><parameter=s>x</function></tool_call>",
     "|<tool_call><function=f><parameter=s>x</function></tool_call>"},
    {TAGGED, "<tool_call><function=g></function></tool_call>",
     "|<tool_call><function=g></function></tool_call>"},
    {KEYED, "<tool_call>f<arg_key>s</arg_key></tool_call>",
     "|<tool_call>f<arg_key>s</arg_key></tool_call>"},
};

static void arguments_of_each_notation_are_read(void **state) {
    (void)state;
    char text[TS_CALLS_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ts_calls(cases[i].template, tools, cases[i].answer, strlen(cases[i].answer), text);
        if (strcmp(text, cases[i].expected) != 0)
            fail_msg("%s: %s, expected %s", cases[i].answer, text, cases[i].expected);
    }
}

static void literals_are_not_nested_without_end(void **state) {
    (void)state;
    char answer[2000], text[TS_CALLS_TEXT];
    for (size_t depth = 1; depth <= 400; depth += 30) {
        size_t n = strlen("<|tool_call_start|>f(x=");
        memcpy(answer, "<|tool_call_start|>f(x=", n);
        memset(answer + n, '[', depth);
        memset(answer + n + depth, ']', depth);
        memcpy(answer + n + 2 * depth, ")", 2);
        ts_calls(PYTHON, tools, answer, strlen(answer), text);
        assert_int_equal(text[0] == 'f', depth <= 32);
    }
}

// Pieces of answers at random: nothing breaks.
static void arguments_survive_any_text(void **state) {
    (void)state;
    static const char *const pieces[] = {
        "<|tool_call_start|>",
        "<|tool_call_end|>",
        "[",
        "]",
        "(",
        ")",
        "f",
        "f(",
        "x=",
        "=",
        ",",
        "'",
        "\"",
        "\\",
        "\\u",
        "\\ud83d",
        "1",
        "-",
        "None",
        "{",
        "}",
        ":",
        " ",
        "\n",
        "\xff",
        "<tool_call>",
        "</tool_call>",
        "<function=f>",
        "<function=",
        ">",
        "<parameter=s>",
        "<parameter=",
        "</parameter>",
        "</function>",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
        "<function_calls>",
        "</function_calls>",
    };
    static const char *const templates[] = {NULL, PYTHON, TAGGED, KEYED, "{# <function_calls> #}"};
    char text[TS_CALLS_TEXT];
    for (int round = 0; round < 20000; round++) {
        size_t n;
        char *exact = ts_random_pieces(pieces, sizeof pieces / sizeof *pieces, &n);
        ts_calls(templates[round % 5], tools, exact, n, text);
        free(exact);
    }
}

static void arguments_survive_failing_allocations(void **state) {
    (void)state;
    static const char *const answers[] = {
        "<|tool_call_start|>[f(x=['a', {'b': 1}])]<|tool_call_end|>",
        "<tool_call><function=f><parameter=n>[1]</parameter></function></tool_call>",
    };
    json_t *list = json_loads(tools, 0, NULL);
    for (size_t i = 0; i < 2; i++) {
        struct st_chat *chat = NULL;
        assert_int_equal(st_chat_open(i ? TAGGED : PYTHON, NULL, &chat), STINT_OK);
        bool failed = true;
        for (size_t nth = 1; failed; nth++) {
            struct st_tool_calls found = {0};
            ts_fail_allocation(nth);
            stint_status status =
                st_tool_calls_parse(chat, answers[i], strlen(answers[i]), list, &found);
            failed = ts_allocation_failed();
            ts_fail_allocation(0);
            if (!failed) assert_int_equal(found.n, 1);
            if (status != STINT_OK) assert_int_equal(status, STINT_E_NOMEM);
            st_tool_calls_free(&found);
        }
        st_chat_close(chat);
    }
    json_decref(list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_of_each_notation_are_read),
        cmocka_unit_test(literals_are_not_nested_without_end),
        cmocka_unit_test(arguments_survive_any_text),
        cmocka_unit_test(arguments_survive_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

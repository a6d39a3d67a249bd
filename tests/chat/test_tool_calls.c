// SPDX-License-Identifier: Apache-2.0
// Answers in each family's format, whole, cut off and broken.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "chat/tool_calls.h"
#include "support/calls.h"
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#define HERMES   "{# <tool_call> #}"
#define MISTRAL  "{# [TOOL_CALLS] #}"
#define LLAMA    "{# <|start_header_id|> <|python_tag|> #}"
#define PHI      "{# <|tool_call|> #}"
#define COMMAND  "{# Action: #}"
#define ACTION   "{# <|START_ACTION|> #}"
#define INTERNLM "{# <|plugin|> #}"
#define BEGIN                                                                                      \
    "<\xef\xbd\x9ctool\xe2\x96\x81"                                                                \
    "call\xe2\x96\x81"                                                                             \
    "begin\xef\xbd\x9c>"
#define END                                                                                        \
    "<\xef\xbd\x9ctool\xe2\x96\x81"                                                                \
    "call\xe2\x96\x81"                                                                             \
    "end\xef\xbd\x9c>"
#define BEGINS                                                                                     \
    "<\xef\xbd\x9ctool\xe2\x96\x81"                                                                \
    "calls\xe2\x96\x81"                                                                            \
    "begin\xef\xbd\x9c>"
#define ENDS                                                                                       \
    "<\xef\xbd\x9ctool\xe2\x96\x81"                                                                \
    "calls\xe2\x96\x81"                                                                            \
    "end\xef\xbd\x9c>"
#define SEP                                                                                        \
    "<\xef\xbd\x9ctool\xe2\x96\x81"                                                                \
    "sep\xef\xbd\x9c>"
#define DEEPSEEK "{# " BEGIN " #}"

static const char tools_text[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}},{\"name\":\"get.it-2\"}]";

static void parse(const char *template, const char *answer, size_t n, char text[TS_CALLS_TEXT]) {
    ts_calls(template, tools_text, answer, n, text);
}

struct answer_case {
    const char *template, *answer, *expected;
};

static const struct answer_case cases[] = {
    {HERMES, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": [1, 0.1]}}\n</tool_call>",
     "f({\"x\": [1, 0.1]})|"},
    {HERMES,
     "Let me see. <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>\n"
     "{\"arguments\": {\"a\":\"</tool_call>\"}, \"name\": \"get.it-2\"}\n</tool_call>\n",
     "f({})get.it-2({\"a\": \"</tool_call>\"})|Let me see."},
    {HERMES, "<tool_call>\n{\"name\": \"f\"}", "f({})|"}, // cut off behind the call
    {HERMES, "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"x\\\": 1}\"}</tool_call>",
     "f({\"x\": 1})|"},
    {MISTRAL,
     "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"x\": 1}, \"id\": \"abcdefghi\"},"
     " {\"name\": \"get.it-2\", \"arguments\": {}}]",
     "f({\"x\": 1})get.it-2({})|"},
    {MISTRAL, "[TOOL_CALLS]f{\"x\": 1}[TOOL_CALLS]get.it-2[CALL_ID]abc[ARGS]{}",
     "f({\"x\": 1})get.it-2({})|"},
    {MISTRAL, " [{\"name\": \"f\", \"arguments\": {\"x\": \"\xc3\xa9\"}}]\n",
     "f({\"x\": \"\xc3\xa9\"})|"},
    {LLAMA, "{\"name\": \"f\", \"parameters\": {\"x\": null}}", "f({\"x\": null})|"},
    {LLAMA, "<|python_tag|>{\"name\": \"f\", \"parameters\": {\"x\": true}}", "f({\"x\": true})|"},
    {LLAMA, "{\"name\":\"f\",\"parameters\":{}}; {\"name\":\"get.it-2\",\"parameters\":{}}",
     "f({})get.it-2({})|"},
    {PHI, "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]<|/tool_call|>", "f({})|"},
    {DEEPSEEK,
     "Well.\n" BEGINS BEGIN "function" SEP "f\n```json\n{\"x\": 1}\n```" END "\n" BEGIN
     "function" SEP "get.it-2\n```json\n{}\n```" END ENDS,
     "f({\"x\": 1})get.it-2({})|Well."},
    {DEEPSEEK, BEGINS BEGIN "f" SEP "{\"x\": 2}" END ENDS, "f({\"x\": 2})|"},
    {COMMAND,
     "Plan: Ask.\nAction:\n```json\n[\n  {\n  \"tool_name\": \"f\",\n  \"parameters\": "
     "{\"x\": 1}\n  }\n]```",
     "f({\"x\": 1})|Plan: Ask."},
    {ACTION,
     "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": {}}]"
     "<|END_ACTION|>",
     "f({})|"},
    {INTERNLM, "<|action_start|><|plugin|>\n{\"name\": \"f\", \"parameters\": {}}<|action_end|>",
     "f({})|"},
    // where the template speaks of no format, any one is found
    {NULL, "<tool_call>{\"name\":\"f\"}</tool_call>", "f({})|"},
    {"{{ messages }}", "[TOOL_CALLS]f{}", "f({})|"},
    // without marks: bare, fenced, in tags; with a name of a tool alone
    {HERMES, "{\"name\": \"f\", \"arguments\": {}}", "f({})|"},
    {HERMES, "Sure:\n```json\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n```\nDone.",
     "f({\"x\": 1})|Sure:\n\nDone."},
    {HERMES, "<tools>\n{\"name\": \"f\", \"arguments\": {}}\n</tools>", "f({})|"},
    {HERMES, "{\"name\": \"f\", \"arguments\": {}}\n\n{\"name\": \"get.it-2\", \"arguments\": {}}",
     "f({})get.it-2({})|"},
    {HERMES,
     "```\n{\"name\": \"f\", \"parameters\": {}}\n```\n```\n"
     "[{\"name\": \"get.it-2\", \"parameters\": {}}]\n```",
     "f({})get.it-2({})|"},
    // what is no call stays text
    {HERMES, " Hello. \n", "|Hello."},
    {HERMES, "", "|"},
    {HERMES, "{\"name\": \"g\", \"arguments\": {}}", "|{\"name\": \"g\", \"arguments\": {}}"},
    {HERMES, "See {\"name\": \"f\", \"arguments\": {}}",
     "|See {\"name\": \"f\", \"arguments\": {}}"},
    {HERMES, "{\"name\": \"f\"}", "|{\"name\": \"f\"}"},
    {HERMES, "{\"name\": \"f\", \"arguments\": {", "|{\"name\": \"f\", \"arguments\": {"},
    {HERMES, "<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>",
     "|<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>"},
    {HERMES, "<tool_call>{\"name\":\"f\",\"arguments\":{</tool_call>",
     "|<tool_call>{\"name\":\"f\",\"arguments\":{</tool_call>"},
    {HERMES, "<tool_call>{\"name\":\"f\",\"arguments\":[1]}</tool_call>",
     "|<tool_call>{\"name\":\"f\",\"arguments\":[1]}</tool_call>"},
    {HERMES, "<tool_call>{\"name\":\"f\"} x </tool_call>",
     "|<tool_call>{\"name\":\"f\"} x </tool_call>"},
    {HERMES, "<tool_call>{x}<tool_call>{\"name\":\"f\"}</tool_call>", "f({})|<tool_call>{x}"},
    {HERMES, "<tool_call>[]</tool_call>", "|<tool_call>[]</tool_call>"},
    {HERMES, "<tool_call>", "|<tool_call>"},
    {LLAMA, "{\"name\": \"f\", \"parameters\": {}} as I said",
     "|{\"name\": \"f\", \"parameters\": {}} as I said"},
    {LLAMA, "<|python_tag|>print(1)", "|<|python_tag|>print(1)"},
    {MISTRAL, "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\"}]",
     "|[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\"}]"},
    {DEEPSEEK, BEGIN "function" SEP "f\n```json\n{}\n", "|" BEGIN "function" SEP "f\n```json\n{}"},
};

static void tool_calls_of_each_family_are_found(void **state) {
    (void)state;
    char text[TS_CALLS_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parse(cases[i].template, cases[i].answer, strlen(cases[i].answer), text);
        if (strcmp(text, cases[i].expected) != 0)
            fail_msg("%s: %s, expected %s", cases[i].answer, text, cases[i].expected);
    }
}

static void tool_calls_need_tools(void **state) {
    (void)state;
    static const char answer[] = "<tool_call>{\"name\":\"f\"}</tool_call>";
    struct st_chat *chat = NULL;
    struct st_tool_calls found;
    assert_int_equal(st_chat_open(NULL, NULL, &chat), STINT_OK);
    assert_int_equal(st_tool_calls_parse(chat, answer, sizeof answer - 1, NULL, &found), STINT_OK);
    assert_int_equal(found.n, 0);
    assert_string_equal(found.content, answer);
    st_tool_calls_free(&found);
    st_chat_close(chat);
}

static void tool_calls_are_bounded(void **state) {
    (void)state;
    static const char one[] = "<tool_call>{\"name\":\"f\"}</tool_call>";
    struct st_chat *chat = NULL;
    struct st_tool_calls found;
    json_t *tools = json_loads(tools_text, 0, NULL);
    size_t n = 1000, n_one = sizeof one - 1;
    char *answer = malloc(n * n_one);
    assert_non_null(answer);
    for (size_t i = 0; i < n; i++) memcpy(answer + i * n_one, one, n_one);
    assert_int_equal(st_chat_open(NULL, NULL, &chat), STINT_OK);
    assert_int_equal(st_tool_calls_parse(chat, answer, n * n_one, tools, &found), STINT_OK);
    assert_int_equal(found.n, ST_TOOL_CALLS_MAX);
    assert_int_equal(strlen(found.content), (n - ST_TOOL_CALLS_MAX) * n_one);
    st_tool_calls_free(&found);
    st_chat_close(chat);
    json_decref(tools);
    free(answer);
}

// Pieces of answers at random: nothing breaks, and what is found is JSON.
static void tool_calls_survive_any_text(void **state) {
    (void)state;
    static const char *const pieces[] = {
        "<tool_call>",
        "</tool_call>",
        "[TOOL_CALLS]",
        "{",
        "}",
        "\"name\"",
        ":",
        "\"f\"",
        ",",
        "\"arguments\"",
        "{}",
        "[",
        "]",
        " ",
        "\n",
        "\xff",
        "\xe3\x80\x80",
        BEGIN,
        SEP,
        END,
        BEGINS,
        ENDS,
        "f",
        "function",
        "\n```json\n",
        "\n```",
        "Action:\n```json\n",
        "\"tool_name\"",
        "\"parameters\"",
        "{\"name\":\"f\",\"arguments\":{}}",
        "<|python_tag|>",
        ";",
        "[ARGS]",
    };
    char text[TS_CALLS_TEXT];
    for (int round = 0; round < 20000; round++) {
        size_t n;
        char *exact = ts_random_pieces(pieces, sizeof pieces / sizeof *pieces, &n);
        parse(round % 2 ? NULL : DEEPSEEK, exact, n, text);
        free(exact);
    }
}

static void tool_calls_survive_failing_allocations(void **state) {
    (void)state;
    static const char answer[] =
        "x <tool_call>{\"name\":\"f\",\"arguments\":{\"x\":1}}</tool_call>";
    struct st_chat *chat = NULL;
    json_t *tools = json_loads(tools_text, 0, NULL);
    assert_int_equal(st_chat_open(HERMES, NULL, &chat), STINT_OK);
    bool failed = true;
    for (size_t nth = 1; failed; nth++) {
        struct st_tool_calls found = {0};
        ts_fail_allocation(nth);
        stint_status status = st_tool_calls_parse(chat, answer, sizeof answer - 1, tools, &found);
        failed = ts_allocation_failed();
        ts_fail_allocation(0);
        if (!failed) assert_int_equal(found.n, 1);
        if (status != STINT_OK) assert_int_equal(status, STINT_E_NOMEM);
        st_tool_calls_free(&found);
    }
    st_chat_close(chat);
    json_decref(tools);
}

// Text streams up to where a call may begin.
static void text_before_calls_is_certain(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t certain;
    } answers[] = {
        {"Hello there", 11},    {"Hello. ", 6},      {"Hello.\n<tool_c", 6},  {"Hello <b", 8},
        {"Hello.\n{\"name", 6}, {"a {b} c", 7},      {"A\n```python\nx", 13}, {"A\n```json\n{", 1},
        {"A\n``", 1},           {"A\n```json\n", 1}, {"<tools>\n", 0},        {"", 0},
        {"A\n<p> text", 10},
    };
    struct st_chat *chat;
    assert_int_equal(st_chat_open(HERMES, NULL, &chat), STINT_OK);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        size_t n = strlen(answers[i].text);
        size_t certain = st_tool_calls_certain(chat, answers[i].text, 0, n);
        if (certain != answers[i].certain) fail_msg("%s: %zu", answers[i].text, certain);
        for (size_t from = 0; from <= certain; from++)
            assert_int_equal(st_tool_calls_certain(chat, answers[i].text, from, n), certain);
    }
    st_chat_close(chat);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tool_calls_of_each_family_are_found),
        cmocka_unit_test(text_before_calls_is_certain),
        cmocka_unit_test(tool_calls_need_tools),
        cmocka_unit_test(tool_calls_are_bounded),
        cmocka_unit_test(tool_calls_survive_any_text),
        cmocka_unit_test(tool_calls_survive_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// The chat templates of families (tests/chat/golden): how an answer begins after the prompt, the
// calls that it makes in the family's format, and how long its text may be one.
#include "chat/chat.h"
#include "chat/reasoning.h"
#include "chat/tool_calls.h"
#include "support/calls.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define WEATHER    "get_weather({\"city\": \"K\xc3\xb6ln\", \"days\": 2})"
#define DEEP(what) "<\xef\xbd\x9ctool\xe2\x96\x81" what "\xef\xbd\x9c>"
#define OF_CALL(w)                                                                                 \
    DEEP("call\xe2\x96\x81"                                                                        \
         "" w)
#define OF_CALLS(w)                                                                                \
    DEEP("calls\xe2\x96\x81"                                                                       \
         "" w)
#define SEP    DEEP("sep")
#define PLACE  "{\"city\": \"K\xc3\xb6ln\", \"days\": 2}"
#define JSON   "{\"name\": \"get_weather\", \"arguments\": " PLACE "}"
#define HERMES "<tool_call>\n" JSON "\n</tool_call>"

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"description\":\"Tells it\","
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"},"
    "\"days\":{\"type\":\"integer\"}}}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"now\",\"description\":\"Tells the time\","
    "\"parameters\":{}}}]";

struct family {
    const char *name;
    enum st_reasoning_phase phase; // behind the prompt of a question
    const char *answer, *expected; // NULL: the family calls no functions
};

static const struct family families[] = {
    {"gpt-oss", ST_REASONING_BEFORE, // the generator rewrites its channels (chat/harmony.h)
     "<tool_call>get_weather{\"city\": \"K\xc3\xb6ln\", \"days\": 2}", WEATHER "|"},
    {"qwen3.5", ST_REASONING_INSIDE,
     "Let me see.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nK\xc3\xb6ln\n"
     "</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n"
     "<function=now>\n</function>\n</tool_call>",
     WEATHER "now({})|Let me see."},
    {"lfm2", ST_REASONING_BEFORE,
     "<|tool_call_start|>[get_weather(city=\"K\xc3\xb6ln\", days=2), now()]<|tool_call_end|>Wait.",
     WEATHER "now({})|Wait."},
    {"granite-4", ST_REASONING_NONE, HERMES "\n<tool_call>\n{\"name\": \"now\"}\n</tool_call>",
     WEATHER "now({})|"},
    {"phi-4-mini", ST_REASONING_NONE, "<|tool_call|>[" JSON "]<|/tool_call|>", WEATHER "|"},
    {"smollm3", ST_REASONING_BEFORE, "Well. " HERMES, WEATHER "|Well."},
    {"olmo-2", ST_REASONING_NONE, NULL, NULL},
    {"olmo-3", ST_REASONING_NONE,
     "<function_calls>get_weather(city=\"K\xc3\xb6ln\", days=2)\nnow()</function_calls>",
     WEATHER "now({})|"},
    {"deepseek-v3.1", ST_REASONING_BEFORE,
     OF_CALLS("begin") OF_CALL("begin") "get_weather" SEP
                                        "{\"city\": \"K\xc3\xb6ln\", \"days\": 2}" OF_CALL("end")
                                            OF_CALLS("end"),
     WEATHER "|"},
    {"deepseek-r1", ST_REASONING_INSIDE,
     OF_CALLS("begin") OF_CALL("begin") "function" SEP "now\n```json\n{}\n```" OF_CALL("end")
         OF_CALLS("end"),
     "now({})|"},
    {"ministral-3", ST_REASONING_BEFORE,
     "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"K\xc3\xb6ln\", \"days\": 2}[TOOL_CALLS]now[ARGS]{}",
     WEATHER "now({})|"},
    {"ernie-4.5", ST_REASONING_NONE, NULL, NULL},
    {"ernie-4.5-thinking", ST_REASONING_INSIDE, HERMES "\n", WEATHER "|"},
    {"glm-4", ST_REASONING_NONE, "get_weather\n{\"city\": \"K\xc3\xb6ln\", \"days\": 2}",
     WEATHER "|"},
    {"glm-4.5", ST_REASONING_BEFORE,
     "\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>K\xc3\xb6ln</arg_value>\n"
     "<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
     WEATHER "|"},
    {"gemma-4", ST_REASONING_BEFORE,
     "<|tool_call>call:get_weather{city:<|\"|>K\xc3\xb6ln<|\"|>,days:2}<tool_call|>"
     "<|tool_call>call:now{}<tool_call|>Wait.",
     WEATHER "now({})|Wait."},
    {"falcon-h1", ST_REASONING_NONE, HERMES, WEATHER "|"},
    {"nemotron-nano", ST_REASONING_INSIDE, "<TOOLCALL>[" JSON ", {\"name\": \"now\"}]</TOOLCALL>",
     WEATHER "now({})|"},
    {"bitnet", ST_REASONING_NONE, NULL, NULL},
    {"qwen2-moe", ST_REASONING_NONE, NULL, NULL},
    {"qwen3", ST_REASONING_BEFORE, HERMES, WEATHER "|"},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

static char *template_of(const struct family *f) {
    char relative[128];
    size_t n;
    snprintf(relative, sizeof relative, "tests/chat/golden/%s.jinja", f->name);
    static const char ends[] = "{%- set bos_token = '<s>' -%}{%- set eos_token = '</s>' -%}";
    char *data = (char *)ts_read(ts_source(relative), &n), *text = calloc(1, n + sizeof ends);
    assert_non_null(text);
    memcpy(text, ends, sizeof ends - 1); // which a tokenizer would tell
    memcpy(text + sizeof ends - 1, data, n);
    free(data);
    return text;
}

static void prompts_tell_how_answers_begin(void **state) {
    (void)state;
    json_t *list = json_loads(tools, 0, NULL);
    json_t *messages = json_loads("[{\"role\":\"system\",\"content\":\"Be kind.\"},"
                                  "{\"role\":\"user\",\"content\":\"Hello\"}]",
                                  0, NULL);
    for (size_t i = 0; i < 2 * N_FAMILIES; i++) {
        const struct family *f = &families[i / 2];
        struct st_chat *chat = NULL;
        char *source = template_of(f), *text = NULL;
        enum st_reasoning_phase phase;
        assert_int_equal(st_chat_open(source, NULL, &chat), STINT_OK);
        assert_true(st_chat_has_template(chat));
        if (st_chat_prompt_thinking(chat, messages, i % 2 ? list : NULL, ST_CHAT_THINKS_AS_EVER,
                                    &text, &phase) != STINT_OK)
            fail_msg("%s: %s", f->name, st_error_text());
        if (phase != f->phase) fail_msg("%s: phase %d behind %s", f->name, (int)phase, text);
        if (i % 2 && f->answer && !strstr(text, "get_weather"))
            fail_msg("%s: no tools in %s", f->name, text);
        free(text);
        st_chat_close(chat);
        free(source);
    }
    json_decref(messages);
    json_decref(list);
}

static void calls_of_each_family_are_found(void **state) {
    (void)state;
    for (size_t i = 0; i < N_FAMILIES; i++) {
        const struct family *f = &families[i];
        char *source = template_of(f), text[TS_CALLS_TEXT];
        if (f->answer) {
            ts_calls(source, tools, f->answer, strlen(f->answer), text);
            if (strcmp(text, f->expected) != 0)
                fail_msg("%s: %s, expected %s", f->name, text, f->expected);
        }
        free(source);
    }
}

// An answer of calls alone is never shown as text while it streams, however it is cut.
static void calls_are_held_back(void **state) {
    (void)state;
    for (size_t i = 0; i < N_FAMILIES; i++) {
        const struct family *f = &families[i];
        struct st_chat *chat = NULL;
        char *source = template_of(f);
        const char *content = f->answer ? strstr(f->expected, "|") + 1 : "";
        bool alone = f->answer && (*content == 0 || strcmp(content, "Wait.") == 0);
        assert_int_equal(st_chat_open(source, NULL, &chat), STINT_OK);
        for (size_t n = 0; alone && n <= strlen(f->answer); n++)
            if (st_tool_calls_certain(chat, f->answer, 0, n) != 0)
                fail_msg("%s: %.*s", f->name, (int)n, f->answer);
        st_chat_close(chat);
        free(source);
    }
}

static void text_that_may_be_a_name_is_held_back(void **state) {
    (void)state;
    struct st_chat *chat = NULL;
    assert_int_equal(st_chat_open("{# <|observation|> #}", NULL, &chat), STINT_OK);
    assert_int_equal(st_tool_calls_certain(chat, "Hello", 0, 5), 0);
    assert_int_equal(st_tool_calls_certain(chat, "Hello there", 0, 11), 11);
    assert_int_equal(st_tool_calls_certain(chat, "Hello there", 5, 11), 11);
    assert_int_equal(st_tool_calls_certain(chat, "Hello!", 0, 6), 6);
    st_chat_close(chat);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_tell_how_answers_begin),
        cmocka_unit_test(calls_of_each_family_are_found),
        cmocka_unit_test(calls_are_held_back),
        cmocka_unit_test(text_that_may_be_a_name_is_held_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

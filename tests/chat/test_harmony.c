// SPDX-License-Identifier: Apache-2.0
// gpt-oss's answers, token by token: channels become reasoning, text and calls.
#include "chat/harmony.h"
#include "chat/reasoning.h"
#include "chat/tool_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

// Tokens, "" at the end.
static const char *rewrite(const char *const *tokens) {
    static char text[2000];
    struct st_harmony h = {0};
    size_t n = 0;
    for (; **tokens; tokens++) {
        size_t made = st_harmony_push(&h, *tokens, strlen(*tokens), text + n);
        assert_true(made <= strlen(*tokens) + ST_HARMONY_ADDED);
        n += made;
    }
    text[n] = 0;
    return text;
}
#define REWRITE(...) rewrite((const char *const[]){__VA_ARGS__, ""})

static void channels_become_marks(void **state) {
    (void)state;
    assert_string_equal(REWRITE("<|channel|>", "anal", "ysis", "<|message|>", "The user", " asks",
                                "<|end|>", "<|start|>", "assistant", "<|channel|>", "final",
                                "<|message|>", "Four.", "<|return|>"),
                        "<think>The user asks</think>Four.");
    assert_string_equal(REWRITE("<|channel|>", "final", "<|message|>", "a", " b"), "a b");
    assert_string_equal(REWRITE("{\"a\":", "1}"), "{\"a\":1}"); // as a schema forces it
    // Reasoning between two calls is left out, a preamble is text.
    assert_string_equal(REWRITE("<|channel|>", "commentary", "<|message|>", "I look.", "<|end|>",
                                "<|start|>", "assistant", "<|channel|>", "analysis", "<|message|>",
                                "hm", "<|end|>", "<|start|>", "assistant", "<|channel|>", "final",
                                "<|message|>", "Done"),
                        "I look.Done");
}

static void calls_can_be_read(void **state) {
    (void)state;
    const char *text =
        REWRITE("<|channel|>", "analysis", "<|message|>", "x", "<|end|>", "<|start|>", "assistant",
                "<|channel|>", "commentary", " to", "=functions", ".get_weather ", "<|constrain|>",
                "json", "<|message|>", "{\"city\"", ":\"Rome\"}", "<|call|>");
    assert_string_equal(text, "<think>x</think><tool_call>get_weather{\"city\":\"Rome\"}");
    // The recipient may stand with the role.
    assert_string_equal(REWRITE("<|start|>", "assistant to=functions.f", "<|channel|>",
                                "commentary", "<|message|>", "{}"),
                        "<tool_call>f{}");
    struct st_chat *chat = NULL;
    struct st_tool_calls calls = {0};
    json_t *tools =
        json_loads("[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\"}}]", 0, NULL);
    const char *answer = "<tool_call>get_weather{\"city\":\"Rome\"}";
    assert_int_equal(st_chat_open("<|start|> <|channel|> <|message|>", NULL, &chat), 0);
    assert_int_equal(st_tool_calls_parse(chat, answer, strlen(answer), tools, &calls), 0);
    assert_int_equal(calls.n, 1);
    assert_string_equal(calls.calls[0].name, "get_weather");
    assert_string_equal(calls.calls[0].arguments, "{\"city\": \"Rome\"}");
    assert_string_equal(calls.content, "");
    st_tool_calls_free(&calls);
    json_decref(tools);
    st_chat_close(chat);
}

static void hostile_answers_stay_in_bounds(void **state) {
    (void)state;
    char name[1000], made[1000 + ST_HARMONY_ADDED];
    struct st_harmony h = {0};
    memset(name, 'a', sizeof name);
    memcpy(name, "to=", 3);
    assert_int_equal(st_harmony_push(&h, "<|channel|>", 11, made), 0);
    assert_int_equal(st_harmony_push(&h, name, sizeof name, made), 0);
    assert_true(st_harmony_push(&h, "<|message|>", 11, made) <= 11 + ST_HARMONY_ADDED);
    assert_int_equal(st_harmony_push(&h, "", 0, made), 0);
    assert_int_equal(st_harmony_push(&h, "<|message|>", 11, made), 11); // within a text it is text
    assert_false(st_harmony_is_spoken(NULL));
    assert_false(st_harmony_is_spoken("<|im_start|>"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_become_marks),
        cmocka_unit_test(calls_can_be_read),
        cmocka_unit_test(hostile_answers_stay_in_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

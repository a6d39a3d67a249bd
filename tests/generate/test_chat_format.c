// SPDX-License-Identifier: Apache-2.0
// The public call that renders a conversation, on a model with a made-up template.
#include "model/model.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char turns[] =
    "{% if tools %}[{% for t in tools %}{{ t.function.name }} {% endfor %}]{% endif %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls %}call {{ c.function.name }}{% endfor %}"
    "{% if m.tool_call_id %}({{ m.tool_call_id }}){% endif %}{% endfor %}"
    "{% if enable_thinking is defined %}{{ enable_thinking }}{% endif %}>";
static const char tools[] = "[{\"type\":\"function\",\"function\":{\"name\":\"clock\"}}]";

static struct stint_tokenizer *tokenizer;
static stint_model model;

static int open_all(void **state) {
    (void)state;
    assert_int_equal(st_tokenizer_open(ts_source("models/novels-10m"), &tokenizer), STINT_OK);
    model.tokenizer = tokenizer;
    return st_chat_open(turns, tokenizer, &model.chat);
}

static int close_all(void **state) {
    (void)state;
    st_chat_close(model.chat);
    st_tokenizer_close(tokenizer);
    return 0;
}

static void messages_become_the_template_s_text(void **state) {
    (void)state;
    char *text = NULL;
    stint_reasoning reasoning = STINT_REASONING_OPEN;
    const stint_message good[] = {{.role = "system", .content = "s"},
                                  {.role = "user", .content = "\xc3\xbc"}};
    assert_int_equal(stint_chat_format(&model, good, 2, NULL, &text, &reasoning), STINT_OK);
    assert_string_equal(text, "<system>s<user>\xc3\xbc>");
    assert_int_equal(reasoning, STINT_REASONING_NONE);
    stint_free(text);
}

static void calls_and_their_results_are_part_of_it(void **state) {
    (void)state;
    char *text = NULL;
    const stint_message messages[] = {
        {.role = "user", .content = "When?"},
        {.role = "assistant",
         .tool_calls = "[{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"clock\","
                       "\"arguments\":\"{}\"}}]"},
        {.role = "tool", .content = "12:00", .tool_call_id = "1"}};
    stint_chat_options options = {
        .size = sizeof options, .tools = tools, .thinking = STINT_THINKING_OFF};
    assert_int_equal(stint_chat_format(&model, messages, 3, &options, &text, NULL), STINT_OK);
    assert_non_null(strstr(text, "[clock ]<user>When?"));
    assert_non_null(strstr(text, "call clock"));
    assert_non_null(strstr(text, "<tool>12:00(1)False>"));
    stint_free(text);
}

static void reasoning_is_told_by_the_template(void **state) {
    (void)state;
    static const struct {
        const char *source;
        stint_reasoning wanted;
    } cases[] = {
        {"{% for m in messages %}{{ m.content }}{% endfor %}<think>\n", STINT_REASONING_OPEN},
        {"{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}:",
         STINT_REASONING_POSSIBLE},
    };
    for (size_t i = 0; i < 2; i++) {
        const stint_message message = {.role = "user", .content = "a"};
        stint_model other = {.tokenizer = tokenizer};
        stint_reasoning reasoning = STINT_REASONING_NONE;
        char *text = NULL;
        assert_int_equal(st_chat_open(cases[i].source, tokenizer, &other.chat), STINT_OK);
        assert_int_equal(stint_chat_format(&other, &message, 1, NULL, &text, &reasoning), STINT_OK);
        assert_int_equal(reasoning, cases[i].wanted);
        stint_free(text);
        st_chat_close(other.chat);
    }
}

static void what_is_wrong_is_named(void **state) {
    (void)state;
    char *text = NULL;
    const stint_message empty = {.role = "user"}, broken = {.role = "user", .content = "\xff"},
                        calls = {.role = "assistant", .tool_calls = "["};
    assert_int_equal(stint_chat_format(&model, &empty, 1, NULL, &text, NULL), STINT_E_ARG);
    assert_int_equal(stint_chat_format(&model, &broken, 1, NULL, &text, NULL), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "UTF-8"));
    assert_int_equal(stint_chat_format(&model, &calls, 1, NULL, &text, NULL), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "tool_calls"));
    const stint_message good = {.role = "user", .content = "a"};
    static const char *const bad[] = {"{}", "[]", "[1]", "not JSON"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stint_chat_options options = {.size = sizeof options, .tools = bad[i]};
        assert_int_equal(stint_chat_format(&model, &good, 1, &options, &text, NULL), STINT_E_ARG);
    }
    stint_chat_options thinking = {.size = sizeof thinking, .thinking = (stint_thinking)7};
    assert_int_equal(stint_chat_format(&model, &good, 1, &thinking, &text, NULL), STINT_E_ARG);
    stint_model none = {0};
    assert_int_equal(stint_chat_format(&none, &good, 1, NULL, &text, NULL), STINT_E_ARG);
    assert_null(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_become_the_template_s_text),
        cmocka_unit_test(calls_and_their_results_are_part_of_it),
        cmocka_unit_test(reasoning_is_told_by_the_template),
        cmocka_unit_test(what_is_wrong_is_named),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

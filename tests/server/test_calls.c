// SPDX-License-Identifier: Apache-2.0
#include "constraint/constraint.h"
#include "server/api/calls.h"
#include "support/support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char tools[] =
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"clock\"}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"days\":{\"type\":\"integer\"}},\"required\":[\"days\"],"
    "\"additionalProperties\":false}}}]";

static struct st_request request_with(const char *choice) {
    char body[1024];
    struct st_request request;
    struct st_problem problem;
    snprintf(body, sizeof body,
             "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],%s,\"tool_choice\":%s}", tools,
             choice);
    if (!st_request_parse(body, strlen(body), true, &request, &problem))
        fail_msg("%s", problem.text);
    return request;
}

// Whether a text follows the schema and may end.
static bool follows(const json_t *schema, const char *text) {
    struct st_constraint *constraint;
    struct st_constraint_state *at;
    if (st_constraint_schema(schema, &constraint) != STINT_OK) fail_msg("%s", stint_error_text());
    assert_int_equal(st_constraint_begin(constraint, &at), STINT_OK);
    bool ok = st_constraint_push(at, text, strlen(text)) && st_constraint_complete(at);
    st_constraint_end(at);
    st_constraint_free(constraint);
    return ok;
}

static void a_required_call_is_one_of_the_tools(void **state) {
    (void)state;
    struct st_request request = request_with("\"required\"");
    json_t *schema;
    assert_int_equal(st_calls_schema(&request, &schema), STINT_OK);
    assert_true(follows(schema, "{\"name\":\"clock\",\"arguments\":{}}"));
    assert_true(follows(schema, "{\"name\":\"weather\",\"arguments\":{\"days\":3}}"));
    assert_false(follows(schema, "{\"name\":\"weather\",\"arguments\":{}}"));
    assert_false(follows(schema, "{\"name\":\"weather\",\"arguments\":{\"days\":\"3\"}}"));
    assert_false(follows(schema, "{\"name\":\"other\",\"arguments\":{}}"));
    assert_false(follows(schema, "{\"name\":\"clock\"}"));
    assert_false(follows(schema, "the time"));
    json_decref(schema);
    st_request_free(&request);
}

static void a_named_call_is_that_tool_alone(void **state) {
    (void)state;
    struct st_request request =
        request_with("{\"type\":\"function\",\"function\":{\"name\":\"weather\"}}");
    json_t *schema;
    assert_int_equal(st_calls_schema(&request, &schema), STINT_OK);
    assert_false(follows(schema, "{\"name\":\"clock\",\"arguments\":{}}"));
    assert_true(follows(schema, "{\"name\":\"weather\",\"arguments\":{\"days\":3}}"));
    json_decref(schema);
    st_request_free(&request);
}

static void where_none_is_required_any_text_will_do(void **state) {
    (void)state;
    static const char *const choices[] = {"\"auto\"", "\"none\""};
    for (size_t i = 0; i < 2; i++) {
        struct st_request request = request_with(choices[i]);
        json_t *schema;
        assert_int_equal(st_calls_schema(&request, &schema), STINT_OK);
        assert_null(schema);
        st_request_free(&request);
    }
}

static struct st_choice choice_of(const char *text) {
    struct st_choice choice = {.end = ST_ENGINE_STOPPED};
    assert_int_equal(st_bytes_append(&choice.text, text, strlen(text)), STINT_OK);
    return choice;
}

static void the_required_call_is_found(void **state) {
    (void)state;
    struct st_request request = request_with("\"required\"");
    struct st_choice choice = choice_of("{\"name\": \"weather\",\n \"arguments\": {\"days\": 3}}");
    assert_int_equal(st_calls_find(&request, NULL, &choice), STINT_OK);
    assert_int_equal(choice.calls.n, 1);
    assert_string_equal(choice.calls.calls[0].name, "weather");
    assert_string_equal(choice.calls.calls[0].arguments, "{\"days\":3}");
    assert_string_equal(st_choice_finish(&choice), "tool_calls");
    st_choice_free(&choice);
    st_request_free(&request);
}

static const char template[] = "{% for m in messages %}{{ m.content }}{% endfor %}<tool_call>";

static void the_model_s_own_calls_are_found(void **state) {
    (void)state;
    static const char answer[] =
        "Let me see.\n<tool_call>\n{\"name\": \"clock\", \"arguments\": {}}\n</tool_call>\n"
        "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"days\": 2}}\n</tool_call>";
    struct st_chat *chat;
    struct st_request request = request_with("\"auto\"");
    assert_int_equal(st_chat_open(template, NULL, &chat), STINT_OK);
    for (size_t n = 2; n > 0; n--) {
        struct st_choice choice = choice_of(answer);
        request.one_call = n == 1;
        assert_int_equal(st_calls_find(&request, chat, &choice), STINT_OK);
        assert_int_equal(choice.calls.n, n);
        assert_string_equal(choice.calls.calls[0].name, "clock");
        assert_string_equal(choice.calls.content, "Let me see.");
        st_choice_free(&choice);
    }
    st_chat_close(chat);
    st_request_free(&request);
}

// A call that is only thought about is none.
static void calls_stand_behind_reasoning(void **state) {
    (void)state;
    static const char own[] =
        "<think>Or <tool_call>{\"name\": \"clock\", \"arguments\": {}}</tool_call>?</think>\n"
        "<tool_call>{\"name\": \"weather\", \"arguments\": {\"days\": 2}}</tool_call>";
    static const char required[] = "<think>Or {}?</think>{\"name\":\"weather\",\"arguments\":{}}";
    struct st_chat *chat;
    assert_int_equal(st_chat_open(template, NULL, &chat), STINT_OK);
    for (int i = 0; i < 2; i++) {
        struct st_request request = request_with(i == 0 ? "\"auto\"" : "\"required\"");
        struct st_choice choice = choice_of(i == 0 ? own : required);
        choice.reasoning.phase = ST_REASONING_BEFORE;
        st_reasoning_push(&choice.reasoning, choice.text.data, choice.text.count);
        assert_int_equal(st_calls_find(&request, chat, &choice), STINT_OK);
        assert_int_equal(choice.calls.n, 1);
        assert_string_equal(choice.calls.calls[0].name, "weather");
        st_choice_free(&choice);
        st_request_free(&request);
    }
    st_chat_close(chat);
}

static void what_was_cut_off_is_no_call(void **state) {
    (void)state;
    static const char *const texts[] = {"", "{\"name\": \"wea", "{\"name\":\"clock\"}",
                                        "{\"name\":1,\"arguments\":{}}", "[]"};
    struct st_request request = request_with("\"required\"");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct st_choice choice = choice_of(texts[i]);
        assert_int_equal(st_calls_find(&request, NULL, &choice), STINT_OK);
        assert_int_equal(choice.calls.n, 0);
        st_choice_free(&choice);
    }
    st_request_free(&request);
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    struct st_request request = request_with("\"required\"");
    for (size_t n = 1;; n++) {
        struct st_choice choice = choice_of("{\"name\":\"clock\",\"arguments\":{}}");
        json_t *schema = NULL;
        ts_fail_allocation(n);
        stint_status status = st_calls_schema(&request, &schema);
        if (status == STINT_OK) status = st_calls_find(&request, NULL, &choice);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        json_decref(schema);
        st_choice_free(&choice);
        if (!failed) break;
    }
    st_request_free(&request);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_required_call_is_one_of_the_tools),
        cmocka_unit_test(a_named_call_is_that_tool_alone),
        cmocka_unit_test(where_none_is_required_any_text_will_do),
        cmocka_unit_test(the_required_call_is_found),
        cmocka_unit_test(the_model_s_own_calls_are_found),
        cmocka_unit_test(calls_stand_behind_reasoning),
        cmocka_unit_test(what_was_cut_off_is_no_call),
        cmocka_unit_test(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "generate/calls.h"
#include "generate/transcript.h"
#include "support/support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char list_text[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"clock\"}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"days\":{\"type\":\"integer\"}},\"required\":[\"days\"],"
    "\"additionalProperties\":false}}}]";
static json_t *list;

static int read_list(void **state) {
    (void)state;
    list = json_loads(list_text, 0, NULL);
    return list == NULL || st_tools_check(list) != STINT_OK;
}

static int free_list(void **state) {
    (void)state;
    json_decref(list);
    return 0;
}

static struct st_tools tools_of(enum st_tool_choice choice, const char *name) {
    return (struct st_tools){.list = list, .choice = choice, .name = name};
}

static void what_is_no_tool_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "[1]", "[{\"type\":\"function\"}]",
        "[{\"type\":\"function\",\"function\":{\"name\":\"\"}}]",
        "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":3}}]",
        "[{\"type\":\"other\",\"function\":{\"name\":\"f\"}}]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *json = json_loads(bad[i], 0, NULL);
        assert_non_null(json);
        assert_int_equal(st_tools_check(json), STINT_E_ARG);
        json_decref(json);
    }
    assert_true(st_tools_have(list, "weather"));
    assert_false(st_tools_have(list, "other"));
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
    struct st_tools tools = tools_of(ST_TOOLS_REQUIRED, NULL);
    json_t *schema;
    assert_int_equal(st_calls_schema(&tools, &schema), STINT_OK);
    assert_true(follows(schema, "{\"name\":\"clock\",\"arguments\":{}}"));
    assert_true(follows(schema, "{\"name\":\"weather\",\"arguments\":{\"days\":3}}"));
    assert_false(follows(schema, "{\"name\":\"weather\",\"arguments\":{}}"));
    assert_false(follows(schema, "{\"name\":\"weather\",\"arguments\":{\"days\":\"3\"}}"));
    assert_false(follows(schema, "{\"name\":\"other\",\"arguments\":{}}"));
    assert_false(follows(schema, "{\"name\":\"clock\"}"));
    assert_false(follows(schema, "the time"));
    json_decref(schema);
}

static void a_named_call_is_that_tool_alone(void **state) {
    (void)state;
    struct st_tools tools = tools_of(ST_TOOLS_REQUIRED, "weather");
    json_t *schema;
    assert_int_equal(st_calls_schema(&tools, &schema), STINT_OK);
    assert_false(follows(schema, "{\"name\":\"clock\",\"arguments\":{}}"));
    assert_true(follows(schema, "{\"name\":\"weather\",\"arguments\":{\"days\":3}}"));
    json_decref(schema);
}

// References of a tool's parameters are to the parameters, wherever these stand.
static void parameters_may_refer_to_themselves(void **state) {
    (void)state;
    static const char text[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
        "\"properties\":{\"a\":{\"$ref\":\"#/$defs/A\"}},\"required\":[\"a\"],"
        "\"additionalProperties\":false,\"$defs\":{\"A\":{\"type\":\"array\",\"items\":"
        "{\"$ref\":\"#/$defs/A\"}}}}}}]";
    json_t *own = json_loads(text, 0, NULL), *same = json_deep_copy(own), *schema;
    struct st_tools tools = {.list = own, .choice = ST_TOOLS_REQUIRED};
    for (int i = 0; i < 2; i++) {
        tools.several = i == 1;
        assert_int_equal(st_calls_schema(&tools, &schema), STINT_OK);
        static const char *const good[] = {"{\"name\":\"f\",\"arguments\":{\"a\":[[],[[]]]}}",
                                           "[{\"name\":\"f\",\"arguments\":{\"a\":[]}},"
            "{\"name\":"
                                           "\"f\",\"arguments\":{\"a\":[]}}]"};
        assert_true(follows(schema, good[i]));
        assert_false(follows(schema, good[1 - i]));
        assert_false(follows(schema, "{\"name\":\"f\",\"arguments\":{\"a\":[1]}}"));
        json_decref(schema);
    }
    assert_true(json_equal(own, same));
    json_decref(own);
    json_decref(same);
}

static void where_none_is_required_any_text_will_do(void **state) {
    (void)state;
    static const enum st_tool_choice choices[] = {ST_TOOLS_AUTO, ST_TOOLS_NONE};
    for (size_t i = 0; i < 2; i++) {
        struct st_tools tools = tools_of(choices[i], NULL);
        json_t *schema;
        assert_int_equal(st_calls_schema(&tools, &schema), STINT_OK);
        assert_null(schema);
    }
}

static struct st_transcript transcript_of(const char *text) {
    struct st_transcript transcript = {.ended = true};
    assert_int_equal(st_bytes_append(&transcript.text, text, strlen(text)), STINT_OK);
    return transcript;
}

static stint_status find(const struct st_tools *tools, const struct st_chat *chat,
                         struct st_transcript *transcript) {
    size_t n;
    const char *text = st_transcript_answer(transcript, &n);
    return st_calls_find(tools, chat, text, n, &transcript->calls);
}

static void the_required_call_is_found(void **state) {
    (void)state;
    struct st_tools tools = tools_of(ST_TOOLS_REQUIRED, NULL);
    struct st_transcript transcript =
        transcript_of("{\"name\": \"weather\",\n \"arguments\": {\"days\": 3}}");
    assert_int_equal(find(&tools, NULL, &transcript), STINT_OK);
    assert_int_equal(transcript.calls.n, 1);
    assert_string_equal(transcript.calls.calls[0].name, "weather");
    assert_string_equal(transcript.calls.calls[0].arguments, "{\"days\":3}");
    st_transcript_free(&transcript);
}

static void required_calls_may_be_several(void **state) {
    (void)state;
    struct st_tools tools = {.list = list, .choice = ST_TOOLS_REQUIRED, .several = true};
    struct st_transcript transcript =
        transcript_of("[{\"name\":\"clock\",\"arguments\":{}},"
        "{\"name\":\"weather\",\"arguments\":{"
                      "\"days\":3}}]");
    assert_int_equal(find(&tools, NULL, &transcript), STINT_OK);
    assert_int_equal(transcript.calls.n, 2);
    assert_string_equal(transcript.calls.calls[1].arguments, "{\"days\":3}");
    st_transcript_free(&transcript);
}

static const char template[] = "{% for m in messages %}{{ m.content }}{% endfor %}<tool_call>";

static void the_model_s_own_calls_are_found(void **state) {
    (void)state;
    static const char answer[] =
        "Let me see.\n<tool_call>\n{\"name\": \"clock\", \"arguments\": {}}\n</tool_call>\n"
        "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"days\": 2}}\n</tool_call>";
    struct st_chat *chat;
    struct st_tools tools = tools_of(ST_TOOLS_AUTO, NULL);
    assert_int_equal(st_chat_open(template, NULL, &chat), STINT_OK);
    for (size_t n = 2; n > 0; n--) {
        struct st_transcript transcript = transcript_of(answer);
        tools.one_call = n == 1;
        assert_int_equal(find(&tools, chat, &transcript), STINT_OK);
        assert_int_equal(transcript.calls.n, n);
        assert_string_equal(transcript.calls.calls[0].name, "clock");
        assert_string_equal(transcript.calls.content, "Let me see.");
        st_transcript_free(&transcript);
    }
    st_chat_close(chat);
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
        struct st_tools tools = tools_of(i == 0 ? ST_TOOLS_AUTO : ST_TOOLS_REQUIRED, NULL);
        struct st_transcript transcript = transcript_of(i == 0 ? own : required);
        transcript.reasoning.phase = ST_REASONING_BEFORE;
        st_reasoning_push(&transcript.reasoning, transcript.text.data, transcript.text.count);
        assert_int_equal(find(&tools, chat, &transcript), STINT_OK);
        assert_int_equal(transcript.calls.n, 1);
        assert_string_equal(transcript.calls.calls[0].name, "weather");
        st_transcript_free(&transcript);
    }
    st_chat_close(chat);
}

static void what_was_cut_off_is_no_call(void **state) {
    (void)state;
    static const char *const texts[] = {"", "{\"name\": \"wea", "{\"name\":\"clock\"}",
                                        "{\"name\":1,\"arguments\":{}}", "[]"};
    struct st_tools tools = tools_of(ST_TOOLS_REQUIRED, NULL);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct st_transcript transcript = transcript_of(texts[i]);
        assert_int_equal(find(&tools, NULL, &transcript), STINT_OK);
        assert_int_equal(transcript.calls.n, 0);
        st_transcript_free(&transcript);
    }
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    struct st_tools tools = tools_of(ST_TOOLS_REQUIRED, NULL);
    for (size_t n = 1;; n++) {
        struct st_transcript transcript = transcript_of("{\"name\":\"clock\",\"arguments\":{}}");
        json_t *schema = NULL;
        ts_fail_allocation(n);
        stint_status status = st_calls_schema(&tools, &schema);
        if (status == STINT_OK) status = find(&tools, NULL, &transcript);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        json_decref(schema);
        st_transcript_free(&transcript);
        if (!failed) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_tool_is_refused),
        cmocka_unit_test(a_required_call_is_one_of_the_tools),
        cmocka_unit_test(a_named_call_is_that_tool_alone),
        cmocka_unit_test(parameters_may_refer_to_themselves),
        cmocka_unit_test(required_calls_may_be_several),
        cmocka_unit_test(where_none_is_required_any_text_will_do),
        cmocka_unit_test(the_required_call_is_found),
        cmocka_unit_test(the_model_s_own_calls_are_found),
        cmocka_unit_test(calls_stand_behind_reasoning),
        cmocka_unit_test(what_was_cut_off_is_no_call),
        cmocka_unit_test(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, read_list, free_list);
}

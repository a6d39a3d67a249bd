// SPDX-License-Identifier: Apache-2.0
#include "server/api/request.h"
#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const stint_sampling openai = {.size = sizeof openai, .temperature = 1.0f};
static const char chat_head[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]";

// A chat or completion with these members more.
static bool parse(bool chat, const char *members, struct st_request *request,
                  struct st_problem *problem) {
    char body[32 << 10];
    snprintf(body, sizeof body, "%s%s}", chat ? chat_head : "{\"prompt\":\"Hi\"", members);
    return st_request_parse(body, strlen(body), chat, &openai, request, problem);
}

static struct st_request parsed(bool chat, const char *members) {
    struct st_request request = {0};
    struct st_problem problem;
    if (!parse(chat, members, &request, &problem)) fail_msg("%s: %s", members, problem.text);
    return request;
}

static void what_is_left_out_has_its_default(void **state) {
    (void)state;
    struct st_request request = parsed(true, "");
    assert_int_equal(request.n, 1);
    assert_int_equal(request.max_tokens, 0);
    assert_true(request.sampling.temperature == 1.0f);
    assert_false(request.seeded || request.stream || request.logprobs);
    assert_null(request.model);
    assert_null(request.tools.list);
    st_request_free(&request);
    request = parsed(false, "");
    assert_int_equal(request.max_tokens, 16);
    assert_int_equal(st_request_prompts(&request), 1);
    st_request_free(&request);
}

static void every_field_arrives(void **state) {
    (void)state;
    struct st_request request = parsed(
        true,
        ",\"model\":\"m\",\"n\":8,\"max_completion_tokens\":7,\"temperature\":0,\"top_p\":0.5,"
        "\"top_k\":9,\"min_p\":0.25,\"presence_penalty\":-2,\"frequency_penalty\":1.5,"
        "\"seed\":-1,\"stop\":[\"a\",\"b\"],\"logprobs\":true,\"top_logprobs\":20,"
        "\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    assert_string_equal(request.model, "m");
    assert_int_equal(request.n, 8);
    assert_int_equal(request.max_tokens, 7);
    assert_true(request.sampling.temperature == 0.0f && request.sampling.top_p == 0.5f);
    assert_true(request.sampling.min_p == 0.25f && request.sampling.top_k == 9);
    assert_true(request.sampling.presence_penalty == -2.0f);
    assert_true(request.sampling.frequency_penalty == 1.5f);
    assert_true(request.seeded && request.sampling.seed == UINT64_MAX);
    assert_int_equal(request.n_stops, 2);
    assert_string_equal(request.stops[1], "b");
    assert_true(request.logprobs && request.n_top == 20);
    assert_true(request.stream && request.include_usage);
    st_request_free(&request);
}

static void sampling_is_the_server_s_where_the_request_is_silent(void **state) {
    (void)state;
    const stint_sampling own = {.size = sizeof own, .temperature = 0.6f, .top_k = 20, .seed = 9};
    static const char body[] = "{\"prompt\":\"Hi\",\"top_k\":0,\"min_p\":0.5}";
    struct st_request request;
    struct st_problem problem;
    assert_true(st_request_parse(body, strlen(body), false, &own, &request, &problem));
    assert_true(request.sampling.temperature == 0.6f && request.sampling.min_p == 0.5f);
    assert_int_equal(request.sampling.top_k, 0);
    assert_true(request.sampling.seed == 9 && request.seeded);
    st_request_free(&request);
}

static void a_top_p_of_0_takes_the_likeliest(void **state) {
    (void)state;
    struct st_request request = parsed(true, ",\"top_p\":0");
    assert_int_equal(request.sampling.top_k, 1);
    st_request_free(&request);
}

static void biases_are_of_tokens(void **state) {
    (void)state;
    struct st_request request =
        parsed(false, ",\"logit_bias\":{\"0\":-100,\"999999999\":100,\"7\":-99.5}");
    assert_int_equal(request.n_biases, 3);
    for (size_t i = 0; i < 3; i++) {
        int32_t id = request.biases[i].id;
        float wanted = id == 0 ? -INFINITY : id == 7 ? -99.5f : 100.0f;
        assert_true(id == 0 || id == 7 || id == 999999999);
        assert_true(request.biases[i].value == wanted);
    }
    st_request_free(&request);
    request = parsed(true, ",\"logit_bias\":{}");
    assert_int_equal(request.n_biases, 0);
    st_request_free(&request);
}

static void too_many_biases_are_refused(void **state) {
    (void)state;
    static char members[24 << 10];
    for (int n = ST_REQUEST_MAX_BIASES; n <= ST_REQUEST_MAX_BIASES + 1; n++) {
        struct st_request request;
        struct st_problem problem;
        size_t at = (size_t)snprintf(members, sizeof members, ",\"logit_bias\":{");
        for (int i = 0; i < n; i++)
            at += (size_t)snprintf(members + at, sizeof members - at, "%s\"%d\":1",
                                   i > 0 ? "," : "", i);
        snprintf(members + at, sizeof members - at, "}");
        bool ok = parse(true, members, &request, &problem);
        assert_int_equal(ok, n == ST_REQUEST_MAX_BIASES);
        if (ok) st_request_free(&request);
    }
}

static void null_is_as_if_left_out(void **state) {
    (void)state;
    struct st_request request =
        parsed(true, ",\"n\":null,\"seed\":null,\"stop\":null,\"tools\":null,\"logprobs\":null,"
                     "\"stream_options\":null,\"response_format\":null,\"anything\":null");
    assert_int_equal(request.n, 1);
    assert_false(request.seeded);
    st_request_free(&request);
}

static void prompts_are_texts_or_ids_or_several(void **state) {
    (void)state;
    static const struct {
        const char *body;
        size_t n;
    } good[] = {{"{\"prompt\":\"a\"}", 1},
                {"{\"prompt\":[\"a\",\"b\"]}", 2},
                {"{\"prompt\":[1,2,3]}", 1},
                {"{\"prompt\":[[1,2],[3],\"a\"]}", 3}};
    static const char *const bad[] = {"{}",
                                      "{\"prompt\":5}",
                                      "{\"prompt\":[]}",
                                      "{\"prompt\":[[]]}",
                                      "{\"prompt\":[1,\"a\"]}",
                                      "{\"prompt\":[[1,2.5]]}",
                                      "{\"prompt\":[{}]}"};
    struct st_request request;
    struct st_problem problem;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(st_request_parse(good[i].body, strlen(good[i].body), false, &openai, &request,
                                     &problem));
        assert_int_equal(st_request_prompts(&request), good[i].n);
        assert_non_null(st_request_prompt(&request, good[i].n - 1));
        st_request_free(&request);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(st_request_parse(bad[i], strlen(bad[i]), false, &openai, &request, &problem));
        assert_string_equal(problem.param, "prompt");
    }
}

static void refusals_name_the_field(void **state) {
    (void)state;
    static const struct {
        bool chat;
        const char *members, *param;
    } cases[] = {
        {true, ",\"n\":0", "n"},
        {true, ",\"n\":9", "n"},
        {true, ",\"n\":true", "n"},
        {true, ",\"temperature\":2.01", "temperature"},
        {true, ",\"temperature\":\"1\"", "temperature"},
        {true, ",\"top_p\":1.01", "top_p"},
        {true, ",\"max_tokens\":0", "max_tokens"},
        {true, ",\"max_completion_tokens\":-1", "max_completion_tokens"},
        {true, ",\"seed\":1.5", "seed"},
        {true, ",\"stop\":[\"a\",\"b\",\"c\",\"d\",\"e\"]", "stop"},
        {true, ",\"stop\":\"\"", "stop"},
        {true, ",\"stop\":[1]", "stop"},
        {true, ",\"stream\":\"yes\"", "stream"},
        {true, ",\"stream_options\":{}", "stream_options"},
        {true, ",\"logit_bias\":[1]", "logit_bias"},
        {true, ",\"logit_bias\":{\"1\":100.5}", "logit_bias"},
        {true, ",\"logit_bias\":{\"1\":\"1\"}", "logit_bias"},
        {true, ",\"logit_bias\":{\"01\":1}", "logit_bias"},
        {true, ",\"logit_bias\":{\"-1\":1}", "logit_bias"},
        {true, ",\"logit_bias\":{\"\":1}", "logit_bias"},
        {true, ",\"logit_bias\":{\"1234567890\":1}", "logit_bias"},
        {false, ",\"logit_bias\":{\"the\":1}", "logit_bias"},
        {true, ",\"top_logprobs\":1", "top_logprobs"},
        {true, ",\"logprobs\":true,\"top_logprobs\":21", "top_logprobs"},
        {true, ",\"response_format\":{\"type\":\"x\"}", "response_format"},
        {true, ",\"response_format\":\"json_object\"", "response_format"},
        {true, ",\"response_format\":{\"type\":\"json_schema\"}", "response_format"},
        {true, ",\"tools\":{}", "tools"},
        {true, ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"\"}}]", "tools"},
        {true, ",\"tool_choice\":\"required\"", "tool_choice"},
        {true, ",\"tool_choice\":\"perhaps\"", "tool_choice"},
        {true, ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}}",
         "tool_choice"},
        {true, ",\"functions\":[{}]", "functions"},
        {true, ",\"chat_template_kwargs\":true", "chat_template_kwargs"},
        {true, ",\"chat_template_kwargs\":{\"date\":\"today\"}", "chat_template_kwargs"},
        {true, ",\"chat_template_kwargs\":{\"enable_thinking\":0}", "enable_thinking"},
        {false, ",\"echo\":1", "echo"},
        {false, ",\"suffix\":1", "suffix"},
        {false, ",\"best_of\":9", "best_of"},
        {false, ",\"logprobs\":true", "logprobs"},
        {false, ",\"logprobs\":21", "logprobs"},
        {false, ",\"model\":[]", "model"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct st_request request;
        struct st_problem problem;
        if (parse(cases[i].chat, cases[i].members, &request, &problem))
            fail_msg("%s was taken", cases[i].members);
        assert_int_equal(problem.status, 400);
        assert_string_equal(problem.param, cases[i].param);
        assert_non_null(strstr(problem.text, "'"));
    }
}

static void the_best_are_of_at_least_as_many_and_not_streamed(void **state) {
    (void)state;
    static const char *const bad[] = {",\"best_of\":2,\"n\":3", ",\"best_of\":2,\"stream\":true"};
    struct st_request request;
    struct st_problem problem;
    for (size_t i = 0; i < 2; i++) {
        assert_false(parse(false, bad[i], &request, &problem));
        assert_string_equal(problem.param, "best_of");
    }
    assert_true(parse(false, ",\"best_of\":2,\"n\":2,\"stream\":true", &request, &problem));
    st_request_free(&request);
    assert_true(parse(false, ",\"best_of\":5,\"n\":2", &request, &problem));
    assert_int_equal(request.best_of, 5);
    st_request_free(&request);
    assert_true(parse(true, "", &request, &problem));
    assert_true(request.n == 1 && request.best_of == 1);
    st_request_free(&request);
}

static void messages_are_checked_one_by_one(void **state) {
    (void)state;
    static const char *const bad[] = {
        "[]",
        "{}",
        "[1]",
        "[{\"role\":\"user\"}]",
        "[{\"content\":\"a\"}]",
        "[{\"role\":\"king\",\"content\":\"a\"}]",
        "[{\"role\":\"user\",\"content\":5}]",
        "[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]",
        "[{\"role\":\"user\",\"content\":[\"a\"]}]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char body[256];
        struct st_request request;
        struct st_problem problem;
        snprintf(body, sizeof body, "{\"messages\":%s}", bad[i]);
        assert_false(st_request_parse(body, strlen(body), true, &openai, &request, &problem));
        assert_int_equal(strncmp(problem.param, "messages", 8), 0);
    }
}

static void a_developer_is_the_system(void **state) {
    (void)state;
    static const char body[] = "{\"messages\":[{\"role\":\"developer\",\"content\":\"a\"}]}";
    struct st_request request;
    struct st_problem problem;
    assert_true(st_request_parse(body, sizeof body - 1, true, &openai, &request, &problem));
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(request.messages, 0), "role")), "system");
    st_request_free(&request);
}

static void tools_and_which_to_call(void **state) {
    (void)state;
    static const char tools[] =
        ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]";
    static const struct {
        const char *choice;
        enum st_tool_choice is;
        bool named;
    } cases[] = {
        {"", ST_TOOLS_AUTO, false},
        {",\"tool_choice\":\"auto\"", ST_TOOLS_AUTO, false},
        {",\"tool_choice\":\"none\"", ST_TOOLS_NONE, false},
        {",\"tool_choice\":\"required\"", ST_TOOLS_REQUIRED, false},
        {",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}}",
         ST_TOOLS_REQUIRED, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char members[256];
        snprintf(members, sizeof members, "%s%s", tools, cases[i].choice);
        struct st_request request = parsed(true, members);
        assert_int_equal(request.tools.choice, cases[i].is);
        assert_int_equal(request.tools.list != NULL, cases[i].is != ST_TOOLS_NONE);
        assert_int_equal(request.tools.name != NULL, cases[i].named);
        st_request_free(&request);
    }
}

static void thinking_may_be_asked_for(void **state) {
    (void)state;
    static const struct {
        const char *members;
        enum st_chat_thinking thinking;
    } cases[] = {
        {"", ST_CHAT_THINKS_AS_EVER},
        {",\"chat_template_kwargs\":null", ST_CHAT_THINKS_AS_EVER},
        {",\"chat_template_kwargs\":{}", ST_CHAT_THINKS_AS_EVER},
        {",\"chat_template_kwargs\":{\"enable_thinking\":null}", ST_CHAT_THINKS_AS_EVER},
        {",\"chat_template_kwargs\":{\"enable_thinking\":true}", ST_CHAT_THINKS},
        {",\"chat_template_kwargs\":{\"enable_thinking\":false}", ST_CHAT_THINKS_NOT},
        {",\"chat_template_kwargs\":{\"thinking\":false}", ST_CHAT_THINKS_NOT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct st_request request = parsed(true, cases[i].members);
        assert_int_equal(request.thinking, cases[i].thinking);
        st_request_free(&request);
    }
}

static void bodies_that_are_no_json_object(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "\"a\"",
                                      "{\"prompt\":\"a\"} x",
                                      "{\"prompt\":\"\xff\"}",
                                      "{\"prompt\":\"a\\u0000b\"}",
                                      "{\"prompt\":\"\\ud800\"}",
                                      "{\"prompt\":\"a\",\"prompt\":\"b\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct st_request request;
        struct st_problem problem;
        assert_false(st_request_parse(bad[i], strlen(bad[i]), false, &openai, &request, &problem));
        assert_int_equal(problem.status, 400);
    }
}

static void deep_nesting_is_refused(void **state) {
    (void)state;
    enum { DEPTH = 10000 };
    char *body = malloc(2 * DEPTH + 32);
    struct st_request request;
    struct st_problem problem;
    assert_non_null(body);
    size_t n = (size_t)sprintf(body, "{\"prompt\":");
    memset(body + n, '[', DEPTH);
    memset(body + n + DEPTH, ']', DEPTH);
    body[n + 2 * DEPTH] = '}';
    assert_false(st_request_parse(body, n + 2 * DEPTH + 1, false, &openai, &request, &problem));
    assert_int_equal(problem.status, 400);
    free(body);
}

static void without_memory_the_server_is_to_blame(void **state) {
    (void)state;
    size_t n = 1;
    for (;; n++) {
        struct st_request request;
        struct st_problem problem;
        ts_fail_allocation(n);
        bool ok = parse(true, ",\"stop\":[\"a\",\"b\"],\"seed\":1,\"logit_bias\":{\"1\":2}",
                        &request, &problem);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        if (ok) st_request_free(&request);
        if (!failed) break;
        assert_false(ok);
        assert_int_equal(problem.status, 503);
    }
    assert_true(n > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out_has_its_default),
        cmocka_unit_test(every_field_arrives),
        cmocka_unit_test(sampling_is_the_server_s_where_the_request_is_silent),
        cmocka_unit_test(a_top_p_of_0_takes_the_likeliest),
        cmocka_unit_test(biases_are_of_tokens),
        cmocka_unit_test(too_many_biases_are_refused),
        cmocka_unit_test(null_is_as_if_left_out),
        cmocka_unit_test(prompts_are_texts_or_ids_or_several),
        cmocka_unit_test(refusals_name_the_field),
        cmocka_unit_test(the_best_are_of_at_least_as_many_and_not_streamed),
        cmocka_unit_test(messages_are_checked_one_by_one),
        cmocka_unit_test(a_developer_is_the_system),
        cmocka_unit_test(tools_and_which_to_call),
        cmocka_unit_test(thinking_may_be_asked_for),
        cmocka_unit_test(bodies_that_are_no_json_object),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(without_memory_the_server_is_to_blame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Conversations as OpenAI has them: what reaches the template, the other ways that are tried, and
// the built-in format where there is no template.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "chat/chat.h"
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

static const char turns[] =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}"
    "[{{ c.function.name }}({{ c.function.arguments|tojson }})]{% endfor %}{% endfor %}"
    "{% if tools %}{{ tools|length }} tools{% endif %}{% if add_generation_prompt %}>{% endif %}";

static stint_status prompt(const char *template, const struct stint_tokenizer *tokenizer,
                           const char *messages, const char *tools, char **text) {
    struct st_chat *chat = NULL;
    json_t *list = json_loads(messages, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    json_t *tool_list = tools ? json_loads(tools, JSON_DECODE_ANY, NULL) : NULL;
    assert_non_null(list);
    assert_int_equal(st_chat_open(template, tokenizer, &chat), STINT_OK);
    stint_status status = st_chat_prompt(chat, list, tool_list, text);
    st_chat_close(chat);
    json_decref(tool_list);
    json_decref(list);
    return status;
}

static void expect(const char *template, const char *messages, const char *tools,
                   const char *expected) {
    char *text = NULL;
    if (prompt(template, NULL, messages, tools, &text) != STINT_OK)
        fail_msg("%s: %s", messages, st_error_text());
    assert_string_equal(text, expected);
    free(text);
}

static void refuses(const char *template, const char *messages, const char *tools,
                    stint_status expected, const char *part) {
    char *text = NULL;
    assert_int_equal(prompt(template, NULL, messages, tools, &text), expected);
    assert_null(text);
    if (!strstr(st_error_text(), part)) fail_msg("'%s' in: %s", part, st_error_text());
}

static void chat_gives_messages_to_the_template(void **state) {
    (void)state;
    expect(turns, "[{\"role\":\"user\",\"content\":\"a\"}]", NULL, "<user>a>");
    expect(turns, "[{\"role\":\"developer\",\"content\":\"a\"}]", "[]", "<system>a>");
    expect(turns,
           "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
           "{\"type\":\"text\",\"text\":\"b\"}]}]",
           "[{},{}]", "<user>a\nb2 tools>");
    expect(turns, "[{\"role\":\"user\",\"content\":[]}]", "null", "<user>>");
    expect(turns,
           "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"function\":{\"name\":"
           "\"f\",\"arguments\":\"{\\\"x\\\": 1}\"}}]},{\"role\":\"tool\",\"content\":\"1\","
           "\"tool_call_id\":\"i\",\"name\":null}]",
           NULL, "<assistant>None[f({\"x\": 1})]<tool>1>");
    expect(turns, "[{\"role\":\"assistant\",\"content\":\"a\",\"tool_calls\":[]}]", NULL,
           "<assistant>a>");
    expect("{{ messages[0].reasoning_content }}: {{ messages[0].content }}",
           "[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"b\"}]", NULL,
           "b: a");
}

static void chat_leaves_the_caller_s_messages_alone(void **state) {
    (void)state;
    static const char source[] =
        "[{\"role\":\"developer\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"u\"},"
        "{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":"
        "\"{}\"}}],\"name\":null}]";
    json_t *messages = json_loads(source, 0, NULL), *same = json_loads(source, 0, NULL);
    struct st_chat *chat = NULL;
    char *text = NULL;
    assert_int_equal(st_chat_open("{{ raise_exception('x') }}", NULL, &chat), STINT_OK);
    assert_int_equal(st_chat_prompt(chat, messages, NULL, &text), STINT_E_ARG);
    assert_true(json_equal(messages, same));
    st_chat_close(chat);
    json_decref(same);
    json_decref(messages);
}

static void chat_tries_what_else_templates_take(void **state) {
    (void)state;
    static const char call[] = "[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":"
                               "\"f\",\"arguments\":{\"x\":[1]}}}]}]";
    static const char system[] = "[{\"role\":\"system\",\"content\":\"s\"},"
                                 "{\"role\":\"user\",\"content\":\"u\"}]";
    expect("{{ messages[0].content + '!' }}{# tool_calls #}", call, NULL, "!");
    expect("{{ 'x' + messages[0].tool_calls[0].function.arguments }}", call, NULL, "x{\"x\":[1]}");
    expect("{{ messages[0].tool_calls[0].function.arguments + messages[0].content }}", call, NULL,
           "{\"x\":[1]}");
    expect("{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}"
           "{{ messages[0].content }}",
           system, NULL, "s\n\nu");
    // nothing helps: the first reason is told
    refuses("{{ raise_exception('no ' ~ messages[0].role) }}", system, NULL, STINT_E_ARG,
            "no system");
}

// Where the format knows no tools, a system text tells of them; calls and results are text.
static void chat_writes_tools_as_text(void **state) {
    (void)state;
    static const char plain[] = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
    static const char talk[] =
        "[{\"role\":\"system\",\"content\":\"Be kind.\"},{\"role\":\"user\",\"content\":\"?\"},"
        "{\"role\":\"assistant\",\"content\":\"So:\",\"tool_calls\":[{\"function\":{\"name\":\"f\","
        "\"arguments\":\"{\\\"x\\\":1}\"}}]},{\"role\":\"tool\",\"content\":\"one\"},"
        "{\"role\":\"tool\",\"content\":\"two\"}]";
    expect(plain, talk, NULL,
           "<system>Be kind.<user>?<assistant>So:\n<tool_call>\n"
           "{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call><user><tool_response>\none\n"
           "</tool_response>\n<tool_response>\ntwo\n</tool_response>");
    char *text = NULL;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(prompt(i == 0 ? plain : NULL, NULL, talk, "[{\"name\":\"g\"}]", &text),
                         STINT_OK);
        assert_non_null(strstr(text, "Be kind.\n\nYou can call functions"));
        assert_non_null(strstr(text, "<tools>\n{\"name\": \"g\"}\n</tools>"));
        free(text);
    }
}

static void chat_opens_the_turn_where_the_template_does_not(void **state) {
    (void)state;
    static const char loop[] =
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}";
    expect(loop, "[{\"role\":\"user\",\"content\":\"a\"}]", NULL,
           "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n");
    expect("<|im_start|>assistant\n{{ '' }}", "[{\"role\":\"user\",\"content\":\"a\"}]", NULL,
           "<|im_start|>assistant\n");
    expect("x", "[]", NULL, "x");
}

static void chat_refuses_what_is_no_conversation(void **state) {
    (void)state;
    refuses(turns, "{}", NULL, STINT_E_ARG, "must be an array");
    refuses(turns, "[1]", NULL, STINT_E_ARG, "message 0");
    refuses(turns, "[{}]", NULL, STINT_E_ARG, "role ''");
    refuses(turns, "[{\"role\":\"king\",\"content\":\"\"}]", NULL, STINT_E_ARG, "'king'");
    refuses(turns, "[{\"role\":\"user\",\"content\":1}]", NULL, STINT_E_ARG, "message 0");
    refuses(turns, "[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]", NULL,
            STINT_E_UNSUPPORTED, "image_url");
    refuses(turns, "[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]", NULL, STINT_E_ARG,
            "has no text");
    refuses(turns, "[{\"role\":\"user\",\"content\":\"\",\"tool_calls\":[]}]", NULL, STINT_E_ARG,
            "assistant");
    refuses(turns, "[{\"role\":\"assistant\",\"tool_calls\":[{}]}]", NULL, STINT_E_ARG, "name");
    refuses(turns, "[{\"role\":\"user\",\"content\":\"a\\u0000b\"}]", NULL, STINT_E_ARG, "NUL");
    refuses(turns, "[]", "{}", STINT_E_ARG, "tools");
}

static void count_warnings(void *context, stint_log_level level, const char *text) {
    (void)text;
    *(int *)context += level == STINT_LOG_WARNING;
}

static void chat_falls_back_to_the_built_in_format(void **state) {
    (void)state;
    struct st_chat *chat = NULL;
    int n_warnings = 0;
    stint_log_set(count_warnings, &n_warnings, STINT_LOG_WARNING);
    assert_int_equal(st_chat_open("{% include 'x' %}<|im_start|>", NULL, &chat), STINT_OK);
    stint_log_set(NULL, NULL, STINT_LOG_WARNING);
    assert_int_equal(n_warnings, 1);
    assert_false(st_chat_has_template(chat));
    assert_string_equal(st_chat_name(st_chat_builtin(chat)), "chatml");
    st_chat_close(chat);
    expect("{% include 'x' %}<|im_start|>", "[{\"role\":\"user\",\"content\":\"a\"}]", NULL,
           "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n");
    expect(NULL, "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}]", NULL,
           "a\n");
}

static void chat_has_the_special_tokens_of_the_tokenizer(void **state) {
    (void)state;
    struct stint_tokenizer *tokenizer;
    char *text = NULL;
    assert_int_equal(st_tokenizer_open(ts_source("models/novels-10m"), &tokenizer), STINT_OK);
    assert_int_equal(prompt("{{ bos_token }}|{{ eos_token }}|{{ pad_token is defined }}", tokenizer,
                            "[]", NULL, &text),
                     STINT_OK);
    assert_string_equal(text, "<|endoftext|>|<|endoftext|>|False");
    free(text);
    st_tokenizer_close(tokenizer);
}

static void chat_of_qwen_is_what_python_renders(void **state) {
    (void)state;
    struct stint_tokenizer *tokenizer;
    struct st_chat *chat = NULL;
    const char *path = ts_shared("fixtures/tokenizers/qwen2.5");
    assert_int_equal(st_tokenizer_open(path, &tokenizer), STINT_OK);
    assert_int_equal(st_chat_open(st_tokenizer_chat_template(tokenizer), tokenizer, &chat),
                     STINT_OK);
    assert_true(st_chat_has_template(chat));
    json_t *talks = json_load_file(ts_source("tests/chat/golden/conversations.json"), 0, NULL);
    json_t *golden = json_load_file(ts_source("tests/chat/golden/qwen2.5.json"), 0, NULL);
    for (size_t i = 0; i < 15; i++) { // the next has arguments as text, which are an object here
        const json_t *context = json_object_get(json_array_get(talks, i), "context");
        char *text = NULL;
        if (!json_is_true(json_object_get(context, "add_generation_prompt"))) continue;
        assert_int_equal(st_chat_prompt(chat, json_object_get(context, "messages"),
                                        json_object_get(context, "tools"), &text),
                         STINT_OK);
        assert_string_equal(text, json_string_value(json_array_get(golden, i)));
        free(text);
    }
    json_decref(golden);
    json_decref(talks);
    st_chat_close(chat);
    st_tokenizer_close(tokenizer);
}

static void chat_survives_failing_allocations(void **state) {
    (void)state;
    static const char source[] =
        "[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":[{\"type\":"
        "\"text\""
        ",\"text\":\"u\"}]},{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\","
        "\"arguments\":\"{\\\"x\\\":1}\"}}]}]";
    json_t *messages = json_loads(source, 0, NULL);
    bool failed = true;
    for (size_t nth = 1; failed; nth++) {
        struct st_chat *chat = NULL;
        char *text = NULL;
        ts_fail_allocation(nth);
        stint_status status =
            st_chat_open("{{ messages[2].content + messages[2].tool_calls[0].function.arguments }}"
                         "<think>",
                         NULL, &chat);
        enum st_reasoning_phase answer;
        if (status == STINT_OK)
            status =
                st_chat_prompt_thinking(chat, messages, NULL, ST_CHAT_THINKS_NOT, &text, &answer);
        failed = ts_allocation_failed();
        ts_fail_allocation(0);
        // jansson takes arguments that it cannot read for want of memory for text that is none
        if (!failed) assert_int_equal(status, STINT_OK);
        if (status == STINT_OK) assert_string_equal(text, "{\"x\":1}<think>\n\n</think>\n\n");
        free(text);
        st_chat_close(chat);
    }
    json_decref(messages);
}

static char *think(const char *file, enum st_chat_thinking thinking,
                   enum st_reasoning_phase *answer) {
    json_t *messages = json_loads("[{\"role\":\"user\",\"content\":\"a<think>\"}]", 0, NULL);
    unsigned char *template = ts_read(ts_source(file), NULL);
    struct st_chat *chat = NULL;
    char *text = NULL;
    assert_int_equal(st_chat_open((char *)template, NULL, &chat), STINT_OK);
    assert_true(st_chat_has_template(chat));
    if (st_chat_prompt_thinking(chat, messages, NULL, thinking, &text, answer) != STINT_OK)
        fail_msg("%s", st_error_text());
    st_chat_close(chat);
    free(template);
    json_decref(messages);
    return text;
}

static bool ends_with(const char *text, const char *end) {
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

// One template leaves it to the model to open its reasoning, one opens it, one knows none.
static void chat_tells_how_the_answer_begins(void **state) {
    static const char qwen[] = "tests/chat/golden/qwen3.jinja",
                      deepseek[] = "tests/chat/golden/deepseek-r1.jinja",
                      phi[] = "tests/chat/golden/phi-3.jinja";
    static const char open[] = "<think>\n", closed[] = "<think>\n\n</think>\n\n";
    static const struct {
        const char *file;
        enum st_chat_thinking thinking;
        enum st_reasoning_phase answer;
        const char *end;
    } rows[] = {
        {qwen, ST_CHAT_THINKS_AS_EVER, ST_REASONING_BEFORE, "<|im_start|>assistant\n"},
        {qwen, ST_CHAT_THINKS, ST_REASONING_BEFORE, "<|im_start|>assistant\n"},
        {qwen, ST_CHAT_THINKS_NOT, ST_REASONING_BEFORE, closed},
        {deepseek, ST_CHAT_THINKS_AS_EVER, ST_REASONING_INSIDE, open},
        {deepseek, ST_CHAT_THINKS, ST_REASONING_INSIDE, open},
        {deepseek, ST_CHAT_THINKS_NOT, ST_REASONING_BEFORE, closed},
        {phi, ST_CHAT_THINKS_AS_EVER, ST_REASONING_NONE, "<|assistant|>\n"},
        {phi, ST_CHAT_THINKS_NOT, ST_REASONING_NONE, "<|assistant|>\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum st_reasoning_phase answer = ST_REASONING_OVER;
        char *text = think(rows[i].file, rows[i].thinking, &answer);
        assert_int_equal(answer, rows[i].answer);
        if (!ends_with(text, rows[i].end)) fail_msg("row %zu: %s", i, text);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chat_gives_messages_to_the_template),
        cmocka_unit_test(chat_leaves_the_caller_s_messages_alone),
        cmocka_unit_test(chat_tries_what_else_templates_take),
        cmocka_unit_test(chat_writes_tools_as_text),
        cmocka_unit_test(chat_opens_the_turn_where_the_template_does_not),
        cmocka_unit_test(chat_refuses_what_is_no_conversation),
        cmocka_unit_test(chat_falls_back_to_the_built_in_format),
        cmocka_unit_test(chat_has_the_special_tokens_of_the_tokenizer),
        cmocka_unit_test(chat_of_qwen_is_what_python_renders),
        cmocka_unit_test(chat_survives_failing_allocations),
        cmocka_unit_test(chat_tells_how_the_answer_begins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

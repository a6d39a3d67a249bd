// SPDX-License-Identifier: Apache-2.0
// Twenty conversations by each template of tests/chat/golden, and by Qwen2.5's own, against what
// Python's Jinja2 rendered (make_golden.py).
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/support.h"
#include "template/jinja.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *load(const char *path) {
    size_t n;
    char *data = (char *)ts_read(path, &n);
    json_t *json = json_loadb(data, n, 0, NULL);
    free(data);
    assert_non_null(json);
    return json;
}

static const char *golden_path(const char *name, const char *ending) {
    char relative[128];
    snprintf(relative, sizeof relative, "tests/chat/golden/%s%s", name, ending);
    return ts_source(relative);
}

static void expect(const struct st_jinja *jinja, const char *name, const json_t *conversation,
                   const json_t *expected) {
    char *text = NULL;
    size_t n = 0;
    stint_status status =
        st_jinja_render(jinja, json_object_get(conversation, "context"), &text, &n);
    const char *title = json_string_value(json_object_get(conversation, "name"));
    if (json_is_null(expected)) {
        if (status != STINT_E_ARG) fail_msg("%s: '%s' is rendered", name, title);
    } else if (status != STINT_OK) {
        fail_msg("%s: '%s': %s", name, title, st_error_text());
    } else if (n != json_string_length(expected) ||
               memcmp(text, json_string_value(expected), n) != 0) {
        fail_msg("%s: '%s': is\n%s\nexpected\n%s", name, title, text, json_string_value(expected));
    }
    free(text);
}

static void expect_all(const char *name, const char *source, size_t n) {
    struct st_jinja *jinja = NULL;
    if (st_jinja_compile(source, n, &jinja) != STINT_OK) fail_msg("%s: %s", name, st_error_text());
    json_t *conversations = load(golden_path("conversations", ".json"));
    json_t *golden = load(golden_path(name, ".json"));
    assert_int_equal(json_array_size(conversations), 20);
    assert_int_equal(json_array_size(golden), 20);
    for (size_t i = 0; i < 20; i++)
        expect(jinja, name, json_array_get(conversations, i), json_array_get(golden, i));
    json_decref(golden);
    json_decref(conversations);
    st_jinja_free(jinja);
}

static void chat_templates_render_as_in_python(void **state) {
    (void)state;
    static const char *const names[] = {
        "llama-3.1", "mistral-nemo",  "gemma",       "phi-3",         "hermes-2-pro",
        "qwen3",     "deepseek-r1",   "command-r",   "gpt-oss",       "qwen3.5",
        "lfm2",      "granite-4",     "phi-4-mini",  "smollm3",       "olmo-2",
        "olmo-3",    "deepseek-v3.1", "ministral-3", "ernie-4.5",     "ernie-4.5-thinking",
        "glm-4",     "glm-4.5",       "falcon-h1",   "nemotron-nano", "bitnet",
        "qwen2-moe"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n;
        char *source = (char *)ts_read(golden_path(names[i], ".jinja"), &n);
        expect_all(names[i], source, n);
        free(source);
    }
}

static void chat_template_of_qwen_renders_as_in_python(void **state) {
    (void)state;
    json_t *config = load(ts_shared("fixtures/tokenizers/qwen2.5/tokenizer_config.json"));
    const json_t *source = json_object_get(config, "chat_template");
    assert_true(json_is_string(source));
    expect_all("qwen2.5", json_string_value(source), json_string_length(source));
    json_decref(config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chat_templates_render_as_in_python),
        cmocka_unit_test(chat_template_of_qwen_renders_as_in_python),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

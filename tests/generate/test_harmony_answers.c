// SPDX-License-Identifier: Apache-2.0
// Answers of a model whose chat template is gpt-oss's: what the generator makes of the special
// tokens in their headers, and what ends them.
#include "generate/calls.h"
#include "generate/generator.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

// A byte-level vocabulary of single letters (the first three are the padding, BOS and EOS of the
// config), and the special tokens behind it.
#define LETTERS "QXZabcdefghijklmnopqrstuvwxyz.={}\":"
static const char *const specials[] = {"<|start|>",   "<|end|>",    "<|message|>",
                                       "<|channel|>", "<|return|>", "<|constrain|>",
                                       "<|call|>",    "[THINK]",    "[/THINK]"};
enum { N_SPECIALS = sizeof specials / sizeof *specials, CONTEXT = 256 };

static void copy(const char *name) {
    char from[200];
    size_t bytes;
    snprintf(from, sizeof from, "tests/golden/models/gpt-oss/%s", name);
    unsigned char *data = ts_read(ts_source(from), &bytes);
    ts_write(name, data, bytes);
    free(data);
}

static void write_tokenizer(const char *template) {
    char text[4000];
    size_t n = (size_t)snprintf(text, sizeof text, "{\"added_tokens\":[");
    for (size_t i = 0; i < N_SPECIALS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "%s{\"id\":%zu,\"content\":\"%s\",\"special\":true}", i ? "," : "",
                              strlen(LETTERS) + i, specials[i]);
    n += (size_t)snprintf(text + n, sizeof text - n,
                          "],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
                          "\"decoder\":{\"type\":\"ByteLevel\"},"
                          "\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{");
    for (size_t i = 0; i < strlen(LETTERS); i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\"%s%c\":%zu", i ? "," : "",
                              LETTERS[i] == '"' ? "\\" : "", LETTERS[i], i);
    snprintf(text + n, sizeof text - n, "}}}");
    ts_write_text("tokenizer.json", text);
    snprintf(text, sizeof text, "{\"eos_token\":\"<|return|>\",\"chat_template\":\"%s\"}",
             template);
    ts_write_text("tokenizer_config.json", text);
}

static int open_model(void **state) {
    stint_model *m = NULL;
    copy("config.json");
    copy("model.safetensors");
    write_tokenizer("{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>"
                    "{% endfor %}<|start|>assistant{# <|channel|> #}");
    if (stint_model_open(ts_temp_folder(), NULL, &m) != STINT_OK)
        fail_msg("%s", stint_error_text());
    *state = m;
    return 0;
}

static int close_model(void **state) {
    stint_model_close(*state);
    return 0;
}

// The text of an answer whose tokens are those of `tokens`.
static const char *answer(const stint_model *m, const char *tokens, bool special,
                          struct st_generator *g) {
    static char text[2000];
    struct st_generator_scratch scratch = {0};
    struct st_generator_options o = {
        .model = m, .reasoning = ST_REASONING_BEFORE, .special = special};
    int32_t history[CONTEXT] = {0}, ids[CONTEXT];
    size_t n = 0, n_text = 0;
    assert_int_equal(stint_tokenize(m->tokenizer, tokens, strlen(tokens), 0, ids, CONTEXT, &n),
                     STINT_OK);
    assert_int_equal(st_generator_open(g, &o), STINT_OK);
    assert_int_equal(st_generator_begin(g, &scratch, history, 1, CONTEXT), STINT_OK);
    for (size_t i = 0; i < n; i++) {
        struct st_token token = {.id = ids[i]};
        struct st_generated made;
        bool goes_on = st_generator_accept(g, &token, &made);
        memcpy(text + n_text, made.text, made.n_bytes);
        n_text += made.n_bytes;
        if (!goes_on) break;
    }
    const char *rest;
    size_t n_rest = st_generator_finish(g, &rest);
    memcpy(text + n_text, rest, n_rest);
    text[n_text + n_rest] = 0;
    st_generator_close(g);
    st_generator_scratch_close(&scratch);
    return text;
}

static void channels_are_rewritten(void **state) {
    static struct st_generator g;
    const char *text = answer(*state,
                              "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>"
                              "final<|message|>yes.<|return|>no",
                              false, &g);
    assert_string_equal(text, "<think>hm</think>yes.");
    assert_int_equal(g.reason, STINT_STOP_EOS);
    assert_int_equal(g.reasoning.phase, ST_REASONING_OVER);
    assert_int_equal(g.reasoning.to - g.reasoning.from, 2);
}

static void a_call_ends_the_answer(void **state) {
    static struct st_generator g;
    const char *text = answer(*state,
                              "<|channel|>commentaryto=functions.f<|constrain|>json<|message|>"
                              "{\"a\":\"b\"}<|call|>x",
                              false, &g);
    assert_string_equal(text, "<tool_call>f{\"a\":\"b\"}");
    assert_int_equal(g.reason, STINT_STOP_EOS);
}

static void special_tokens_are_shown_on_request(void **state) {
    static struct st_generator g;
    const char *text = answer(*state, "<|channel|>final<|message|>yes", true, &g);
    assert_string_equal(text, "<|channel|>final<|message|>yes");
}

// Their channels are text for all that follows, with tools and without.
static void special_tokens_are_not_shown_for_tools(void **state) {
    const stint_model *m = *state;
    assert_false(st_calls_marks_special(m->tokenizer, true, true));
    assert_false(st_calls_marks_special(m->tokenizer, false, true));
}

// Ministral 3 has marks of its own around its reasoning, which are special tokens.
static void other_marks_are_read_as_ours(void **state) {
    (void)state;
    static struct st_generator g;
    stint_model *m = NULL;
    write_tokenizer("{{ messages }}{# [THINK] #}");
    assert_int_equal(stint_model_open(ts_temp_folder(), NULL, &m), STINT_OK);
    bool special = st_calls_marks_special(m->tokenizer, false, true);
    assert_true(special);
    const char *text = answer(m, "[THINK]hm[/THINK]yes.<|return|>no", special, &g);
    assert_string_equal(text, "<think>hm</think>yes.");
    assert_int_equal(g.reasoning.phase, ST_REASONING_OVER);
    assert_int_equal(g.reasoning.to - g.reasoning.from, 2);
    stint_model_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_are_rewritten),
        cmocka_unit_test(special_tokens_are_not_shown_for_tools),
        cmocka_unit_test(other_marks_are_read_as_ours),
        cmocka_unit_test(a_call_ends_the_answer),
        cmocka_unit_test(special_tokens_are_shown_on_request),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}

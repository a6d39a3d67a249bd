// SPDX-License-Identifier: Apache-2.0
// Answers of tasks are those that stint_generate() gives to the same prompts.
#include "eval/answers.h"
#include "format/expect.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { TOKENS = 24 };

static stint_model *model;

static int open_model(void **state) {
    (void)state;
    return stint_model_open(ts_built("models/novels-2"), NULL, &model) == STINT_OK ? 0 : -1;
}

static int close_model(void **state) {
    (void)state;
    stint_model_close(model);
    return 0;
}

// The text of the last item.
static void keep_text(void *context, const stint_eval_item *item) {
    char **text = context;
    free(*text);
    *text = strdup(item->text);
}

static stint_status run(const char *task, const char *data, uint32_t n_tokens, char **text) {
    stint_eval_result result = {.size = sizeof result};
    const stint_eval_options options = {.size = sizeof options,
                                        .task = task,
                                        .data = data,
                                        .n_tokens = n_tokens,
                                        .item = keep_text,
                                        .context = text};
    *text = NULL;
    return stint_eval(model, &options, &result);
}

// What the model writes after ids [n], in a context that just holds both.
static char *write_after(const int32_t *ids, size_t n) {
    int32_t out[TOKENS];
    char *text = calloc(1, 4096);
    size_t bytes = 0;
    stint_session *session;
    const stint_session_options options = {.size = sizeof options,
                                           .n_context = (uint32_t)n + TOKENS};
    const stint_generation generation = {.size = sizeof generation, .n_tokens = TOKENS};
    stint_generation_result result = {.size = sizeof result};
    assert_int_equal(stint_session_open(model, &options, &session), STINT_OK);
    assert_int_equal(stint_generate(session, ids, n, &generation, out, TOKENS, &result), STINT_OK);
    assert_int_equal(
        stint_detokenize(model->tokenizer, out, result.generated_tokens, 0, text, 4096, &bytes),
        STINT_OK);
    stint_session_close(session);
    return text;
}

static struct st_ids ids_of(const stint_message *messages, size_t n) {
    struct st_ids ids = {0};
    char *text;
    assert_int_equal(stint_chat_format(model, messages, n, NULL, &text, NULL), STINT_OK);
    assert_int_equal(st_tokenizer_encode(model->tokenizer, text, strlen(text), 0, &ids), STINT_OK);
    stint_free(text);
    return ids;
}

static struct st_ids chat_ids(const char *content) {
    return ids_of(&(stint_message){.role = "user", .content = content}, 1);
}

static const char *trimmed(char *text) {
    size_t n = strlen(text);
    while (n > 0 && strchr(" \n\r\t", text[n - 1])) text[--n] = 0;
    return text + strspn(text, " \n\r\t");
}

// The prompt of a question, as the reader makes it.
static char *prompt_of(const char *data) {
    struct st_items items = {0};
    assert_int_equal(st_items_read_longqa(data, 0, &items), STINT_OK);
    char *prompt = strdup(items.items[0].context[0]);
    st_items_free(&items);
    return prompt;
}

static void questions_are_chats(void **state) {
    (void)state;
    char *text;
    const char *data =
        ts_write_text("qa.jsonl", "{\"context\": \"He sat in the garden.\", \"input\": "
                                  "\"Where?\", \"answers\": [\"garden\"]}");
    assert_int_equal(run("longqa", data, TOKENS, &text), STINT_OK);
    char *prompt = prompt_of(data);
    struct st_ids ids = chat_ids(prompt);
    char *written = write_after(ids.data, ids.count);
    assert_true(*text);
    assert_string_equal(text, trimmed(written));
    free(written);
    free(prompt);
    free(text);
    st_ids_free(&ids);
}

// A passage longer than the model's context; the answer is written after both of its ends.
static void long_questions_lose_their_middle(void **state) {
    (void)state;
    size_t room = model->config.context - TOKENS, n = 3 * (size_t)model->config.context;
    char *passage = calloc(1, 6 * n + 200), *text, *to = passage;
    to += sprintf(to, "{\"input\": \"Where?\", \"answers\": [\"garden\"], \"context\": \"");
    for (size_t i = 0; i < n; i++) to += sprintf(to, "%s ", i % 3 ? "the" : "old");
    sprintf(to, "\"}");
    const char *data = ts_write_text("long.jsonl", passage);
    assert_int_equal(run("longqa", data, TOKENS, &text), STINT_OK);
    char *prompt = prompt_of(data);
    struct st_ids ids = chat_ids(prompt);
    assert_true(ids.count > room);
    size_t head = room / 2, tail = room - head;
    memmove(ids.data + head, ids.data + ids.count - tail, tail * sizeof *ids.data);
    char *written = write_after(ids.data, room);
    assert_string_equal(text, trimmed(written));
    free(written);
    free(prompt);
    free(text);
    free(passage);
    st_ids_free(&ids);
}

static void lines_end_answers_after_prompts(void **state) {
    (void)state;
    char *text;
    const char *data =
        ts_write_text("p.jsonl", "{\"prompt\": \"The old man said\", \"reference\": \"no\"}");
    assert_int_equal(run("generate", data, 200, &text), STINT_OK);
    assert_null(strchr(text, '\n'));
    free(text);
}

// The second turn follows the first one and its answer.
static void turns_are_one_conversation(void **state) {
    (void)state;
    char *text;
    const char *data = ts_write_text(
        "q.jsonl",
        "{\"question_id\": 81, \"turns\": [\"Tell me of the sea.\", \"And the hills?\"]}");
    assert_int_equal(run("mt_bench", data, TOKENS, &text), STINT_OK);
    json_t *answers = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(answers), 2);
    stint_message messages[] = {
        {.role = "user", .content = "Tell me of the sea."},
        {.role = "assistant", .content = json_string_value(json_array_get(answers, 0))},
        {.role = "user", .content = "And the hills?"},
    };
    for (size_t turn = 0; turn < 2; turn++) {
        struct st_ids ids = ids_of(messages, 2 * turn + 1);
        char *written = write_after(ids.data, ids.count);
        assert_true(*trimmed(written));
        assert_string_equal(json_string_value(json_array_get(answers, turn)), trimmed(written));
        free(written);
        st_ids_free(&ids);
    }
    json_decref(answers);
    free(text);
}

static void what_is_wrong_is_said(void **state) {
    (void)state;
    char *text;
    const char *data = ts_write_text("p.jsonl", "{\"prompt\": \"a\", \"reference\": \"no\"}");
    assert_failure(run("generate", data, 4097, &text), STINT_E_ARG, "at most 4096");
    data = ts_write_text("empty.jsonl", "\n");
    assert_failure(run("longqa", data, TOKENS, &text), STINT_E_FORMAT, "holds no items");
    assert_null(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_are_chats),
        cmocka_unit_test(long_questions_lose_their_middle),
        cmocka_unit_test(lines_end_answers_after_prompts),
        cmocka_unit_test(turns_are_one_conversation),
        cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}

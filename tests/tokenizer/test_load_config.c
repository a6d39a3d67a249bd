// SPDX-License-Identifier: Apache-2.0
// What stands beside a vocabulary: which tokens are special, where a text begins and ends.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/expect.h"
#include "support/support.h"
#include "tokenizer/parts.h"

#include <stdio.h>

static const char vocab[] = "{\"a\":0,\"b\":1,\"ab\":2,\"</s>\":3,\"<pad>\":4,"
                            "\"<|endoftext|>\":5,\"<\":6,\"/\":7,\"s\":8,\">\":9}";

static struct stint_tokenizer *open_folder(const char *config, const char *specials) {
    struct stint_tokenizer *t = NULL;
    ts_write_text("vocab.json", vocab);
    ts_write_text("merges.txt", "#version: 0.2\na b\n");
    ts_write_text("tokenizer_config.json", config);
    ts_write_text("special_tokens_map.json", specials);
    if (st_tokenizer_open(ts_temp_folder(), &t) != STINT_OK) fail_msg("%s", st_error_text());
    return t;
}

static void assert_ids(const struct stint_tokenizer *t, const char *text, uint32_t flags,
                       const int32_t *wanted, size_t n) {
    struct st_ids ids = {0};
    assert_int_equal(st_tokenizer_encode(t, text, strlen(text), flags, &ids), STINT_OK);
    assert_int_equal(ids.count, n);
    assert_memory_equal(ids.data, wanted, n * sizeof *wanted);
    st_ids_free(&ids);
}

static void a_token_with_a_role_is_special(void **state) {
    (void)state;
    struct stint_tokenizer *t = open_folder("{\"tokenizer_class\":\"GPT2Tokenizer\","
                                            "\"bos_token\":{\"content\":\"</s>\"},"
                                            "\"eos_token\":\"</s>\",\"add_bos_token\":true}",
                                            "{\"pad_token\":\"<pad>\"}");
    assert_int_equal(st_tokenizer_bos(t), 3);
    assert_int_equal(st_tokenizer_eos(t), 3);
    assert_ids(t, "ab</s><pad>a", STINT_TOKENIZE_ADD_BOS, (int32_t[]){3, 2, 3, 4, 0}, 5);
    assert_ids(t, "</s>", STINT_TOKENIZE_PLAIN, (int32_t[]){6, 7, 8, 9}, 4);
    st_tokenizer_close(t);
}

static void what_a_text_to_embed_ends_with(void **state) {
    (void)state;
    struct stint_tokenizer *t =
        open_folder("{\"eos_token\":\"</s>\",\"add_eos_token\":true}", "{}");
    assert_ids(t, "ab", STINT_TOKENIZE_ADD_BOS, (int32_t[]){2}, 1);
    assert_ids(t, "ab", STINT_TOKENIZE_ADD_BOS | STINT_TOKENIZE_ADD_END, (int32_t[]){2, 3}, 2);
    st_tokenizer_close(t);
    t = open_folder("{\"eos_token\":\"</s>\"}", "{}");
    assert_ids(t, "ab", STINT_TOKENIZE_ADD_END, (int32_t[]){2}, 1);
    st_tokenizer_close(t);
}

// Qwen3-Embedding's: the end is no EOS there.
static void a_post_processor_says_so_too(void **state) {
    (void)state;
    struct stint_tokenizer *t = NULL;
    const char *path = ts_write_text(
        "tokenizer.json", "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},"
                          "\"added_tokens\":[{\"id\":2,\"content\":\"<|end|>\",\"special\":true}],"
                          "\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":"
                          "\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\"}},"
                          "{\"SpecialToken\":{\"id\":\"<|end|>\"}}]}]}}");
    if (st_tokenizer_open(path, &t) != STINT_OK) fail_msg("%s", st_error_text());
    assert_int_equal(st_tokenizer_bos(t), -1);
    assert_ids(t, "ab", STINT_TOKENIZE_ADD_BOS, (int32_t[]){0, 1}, 2);
    assert_ids(t, "ab", STINT_TOKENIZE_ADD_BOS | STINT_TOKENIZE_ADD_END, (int32_t[]){0, 1, 2}, 3);
    st_tokenizer_close(t);
    remove(path); // or it would go before vocab.json
}

static void gpt2_ends_with_endoftext_by_default(void **state) {
    (void)state;
    struct stint_tokenizer *t = open_folder("{\"chat_template\":\"x\"}", "{}");
    assert_int_equal(st_tokenizer_eos(t), 5);
    assert_ids(t, "a<|endoftext|>", STINT_TOKENIZE_ADD_BOS, (int32_t[]){0, 5}, 2);
    assert_string_equal(st_tokenizer_chat_template(t), "x");
    st_tokenizer_close(t);
}

static void a_null_bos_is_none(void **state) {
    (void)state;
    struct stint_tokenizer *t =
        open_folder("{\"bos_token\":null,\"add_bos_token\":true}", "{\"bos_token\":\"</s>\"}");
    assert_int_equal(st_tokenizer_bos(t), -1);
    assert_ids(t, "a", STINT_TOKENIZE_ADD_BOS, (int32_t[]){0}, 1);
    st_tokenizer_close(t);
}

static void the_default_one_of_several_templates_is_taken(void **state) {
    (void)state;
    struct stint_tokenizer *t =
        open_folder("{\"chat_template\":[{\"name\":\"tools\",\"template\":\"t\"},"
                    "{\"name\":\"default\",\"template\":\"d\"}]}",
                    "{}");
    assert_string_equal(st_tokenizer_chat_template(t), "d");
    st_tokenizer_close(t);
}

static void added_tokens_extend_the_vocabulary(void **state) {
    (void)state;
    struct stint_tokenizer *t = open_folder(
        "{\"added_tokens_decoder\":{\"20\":{\"content\":\"<|x|>\",\"special\":true}}}", "{}");
    assert_int_equal(st_tokenizer_vocab(t), 21);
    assert_ids(t, "a<|x|>", 0, (int32_t[]){0, 20}, 2);
    st_tokenizer_close(t);
}

static void damaged_configs_are_refused_by_name(void **state) {
    (void)state;
    static const char *const configs[] = {
        "[]",
        "{\"bos_token\":7}",
        "{\"add_bos_token\":\"yes\"}",
        "{\"added_tokens_decoder\":{\"x\":{\"content\":\"y\"}}}",
        "{\"added_tokens_decoder\":{\"-1\":{\"content\":\"y\"}}}",
        "{\"added_tokens_decoder\":{\"2147483647\":{\"content\":\"y\"}}}",
        "{\"added_tokens_decoder\":{\"0\":{\"content\":\"other\"}}}",
        "{\"added_tokens_decoder\":{\"30\":{\"content\":5}}}",
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        struct stint_tokenizer *t = NULL;
        ts_write_text("vocab.json", vocab);
        ts_write_text("merges.txt", "a b\n");
        ts_write_text("special_tokens_map.json", "{}");
        ts_write_text("tokenizer_config.json", configs[i]);
        assert_failure(st_tokenizer_open(ts_temp_folder(), &t), STINT_E_FORMAT,
                       "tokenizer_config.json: ");
        assert_null(t);
    }
}

// Each allocation fails in turn: an error, no leak, and in the end success.
static void no_lost_memory_when_memory_is_short(void **state) {
    (void)state;
    ts_write_text("vocab.json", vocab);
    ts_write_text("merges.txt", "a b\n");
    ts_write_text("special_tokens_map.json", "{\"pad_token\":\"<pad>\"}");
    ts_write_text("tokenizer_config.json", "{\"tokenizer_class\":\"Qwen2Tokenizer\","
                                           "\"chat_template\":\"x\"}");
    const char *folder = ts_temp_folder();
    for (size_t n = 1;; n++) {
        struct stint_tokenizer *t = NULL;
        ts_fail_allocation(n);
        stint_status status = st_tokenizer_open(folder, &t);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        if (status == STINT_OK) st_tokenizer_close(t);
        if (!failed) {
            assert_int_equal(status, STINT_OK);
            break;
        }
        assert_true(n < 10000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_with_a_role_is_special),
        cmocka_unit_test(what_a_text_to_embed_ends_with),
        cmocka_unit_test(a_post_processor_says_so_too),
        cmocka_unit_test(gpt2_ends_with_endoftext_by_default),
        cmocka_unit_test(a_null_bos_is_none),
        cmocka_unit_test(the_default_one_of_several_templates_is_taken),
        cmocka_unit_test(added_tokens_extend_the_vocabulary),
        cmocka_unit_test(damaged_configs_are_refused_by_name),
        cmocka_unit_test(no_lost_memory_when_memory_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

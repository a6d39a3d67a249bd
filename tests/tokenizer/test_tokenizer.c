// SPDX-License-Identifier: Apache-2.0
// Whole tokenizers from small files: joins, unknown characters, added tokens, and files
// that must be refused.
#include "tokenizer/parts.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stdio.h>

static struct stint_tokenizer *open_text(const char *json) {
    struct stint_tokenizer *t = NULL;
    if (st_tokenizer_from_json("tokenizer.json", json, strlen(json), &t) != STINT_OK)
        fail_msg("%s", st_error_text());
    return t;
}

static void assert_ids(const struct stint_tokenizer *t, const char *text, const char *wanted) {
    struct st_ids ids = {0};
    char got[256] = "";
    assert_int_equal(st_tokenizer_encode(t, text, strlen(text), 0, &ids), STINT_OK);
    for (size_t i = 0; i < ids.count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d", i ? " " : "", ids.data[i]);
    assert_string_equal(got, wanted);
    st_ids_free(&ids);
}

#define BPE(vocab, merges, more)                                                                   \
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{" vocab "},\"merges\":[" merges "]" more "}"

static void pairs_join_in_the_order_of_the_merges(void **state) {
    (void)state;
    struct stint_tokenizer *t = open_text(BPE("\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"bc\":4,\"abc\":5",
                                              "\"b c\",\"a b\",[\"a\",\"bc\"]", "") "}");
    assert_ids(t, "abc", "5"); // b c first, then a bc
    assert_ids(t, "abab", "3 3");
    assert_ids(t, "aab", "0 3");
    assert_ids(t, "", "");
    assert_ids(t, "axb", "3"); // no unknown token: left out, and its neighbours join
    st_tokenizer_close(t);
}

static void unknown_characters_become_bytes_or_unk(void **state) {
    (void)state;
    struct stint_tokenizer *t =
        open_text(BPE("\"<unk>\":0,\"a\":1,\"<0xC3>\":2,\"<0xA9>\":3", "",
                      ",\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"fuse_unk\":true") "}");
    assert_ids(t, "a\xc3\xa9", "1 2 3");
    assert_ids(t,
               "a\xc3\xa8\xc3\xa8"
               "a",
               "1 0 1"); // one byte has no token: unknown, and fused
    st_tokenizer_close(t);
}

static void unigram_takes_the_best_sum(void **state) {
    (void)state;
    struct stint_tokenizer *t = open_text("{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":"
                                          "[[\"<unk>\",0],[\"a\",-2],[\"b\",-2],"
                                          "[\"ab\",-3],[\"abc\",-9],[\"c\",-3]]}}");
    assert_ids(t, "abc", "3 5"); // -6 beats -9 and -7
    assert_ids(t, "ab", "3");
    assert_ids(t, "axb", "1 0 2");
    st_tokenizer_close(t);
}

static void added_tokens_are_cut_out_longest_first(void **state) {
    (void)state;
    struct stint_tokenizer *t =
        open_text(BPE("\"a\":0,\"<\":1,\"s\":2,\">\":3,\" \":4", "",
                      "") ",\"added_tokens\":["
                          "{\"id\":10,\"content\":\"<s>\",\"special\":true},{\"id\":11,\"content\":"
                          "\"<s>a\",\"special\":true},"
                          "{\"id\":12,\"content\":\"ss\",\"special\":false,\"normalized\":false,"
                          "\"lstrip\":true,\"rstrip\":true},"
                          "{\"id\":13,\"content\":\"aa\",\"special\":false,\"normalized\":false,"
                          "\"single_word\":true}]}");
    assert_ids(t, "<s>a<s>", "11 10");
    assert_ids(t, "a  ss  a", "0 12 0");
    assert_ids(t, "aaa", "0 0 0");
    assert_ids(t, "<aa>", "1 13 3");
    struct st_ids ids = {0};
    st_tokenizer_encode(t, "<s>", 3, STINT_TOKENIZE_PLAIN, &ids);
    assert_int_equal(ids.count, 3); // plain characters
    st_ids_free(&ids);
    st_tokenizer_close(t);
}

static void broken_text_is_repaired(void **state) {
    (void)state;
    struct stint_tokenizer *t = open_text(BPE("\"a\":0,\"\\ufffd\":1", "", "") "}");
    assert_ids(t,
               "a\xff"
               "a\xe2\x96",
               "0 1 0 1");
    st_tokenizer_close(t);
}

static void hostile_files_get_one_clear_error(void **state) {
    (void)state;
    const struct {
        const char *text, *mark;
    } cases[] = {
        {"", "JSON"},
        {"[]", "object"},
        {"{}", "model type"},
        {"{\"model\":{\"type\":\"WordPiece\"}}", "WordPiece"},
        {BPE("\"a\":0", "\"a b\"", "") "}", "merge 0"},
        {BPE("\"a\":0", "\"a\"", "") "}", "merge 0"},
        {BPE("\"a\":0", "\"a a\"", "") "}", "merge 0"}, // joins into itself: no such token
        {BPE("\"a\":0,\"b\":0", "", "") "}", "same id"},
        {BPE("\"a\":2147483648", "", "") "}", "id"},
        {BPE("\"a\":1000000", "", "") "}", "beyond"},
        {BPE("\"a\":-1", "", "") "}", "id"},
        {BPE("\"a\":\"0\"", "", "") "}", "integer"},
        {BPE("\"\":0", "", "") "}", "empty"},
        {BPE("", "", "") "}", "empty"},
        {BPE("\"a\":0", "", ",\"end_of_word_suffix\":\"</w>\"") "}", "suffix"},
        {BPE("\"a\":0", "", "") ",\"pre_tokenizer\":{\"type\":\"Magic\"}}", "Magic"},
        {BPE("\"a\":0", "",
             "") ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"}}}",
         "regular"},
        {BPE("\"a\":0", "", "") ",\"normalizer\":{}}", "type"},
        {BPE("\"a\":0", "", "") ",\"normalizer\":{\"type\":\"Precompiled\","
                                "\"precompiled_charsmap\":\"////\"}}",
         "map"},
        {BPE("\"a\":0", "", "") ",\"added_tokens\":[{\"id\":1}]}", "added_tokens"},
        {BPE("\"a\":0", "", "") ",\"added_tokens\":[{\"id\":1,\"content\":\"\"}]}", "empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stint_tokenizer *t = NULL;
        stint_status status =
            st_tokenizer_from_json("tokenizer.json", cases[i].text, strlen(cases[i].text), &t);
        if (status == STINT_OK) fail_msg("case %zu was taken", i);
        assert_null(t);
        if (!strstr(st_error_text(), cases[i].mark))
            fail_msg("case %zu: '%s' does not mention '%s'", i, st_error_text(), cases[i].mark);
    }
}

static void nested_steps_end_somewhere(void **state) {
    (void)state;
    char text[4096] = "{\"normalizer\":";
    for (int i = 0; i < 50; i++) strcat(text, "{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 50; i++) strcat(text, "]}");
    strcat(text, "}");
    struct stint_tokenizer *t = NULL;
    assert_int_not_equal(st_tokenizer_from_json("x", text, strlen(text), &t), STINT_OK);
}

static void truncated_sentencepiece_models_are_refused(void **state) {
    (void)state;
    // Two pieces: "a" with score -1, "ab" with score -0.5; trainer: BPE.
    const char model[] = "\x0a\x08\x0a\x01"
                         "a\x15\x00\x00\x80\xbf"
                         "\x0a\x09\x0a\x02"
                         "ab\x15\x00\x00\x00\xbf"
                         "\x12\x02\x18\x02";
    size_t n = sizeof model - 1, accepted = 0;
    for (size_t bytes = 0; bytes <= n; bytes++) {
        struct stint_tokenizer *t = NULL;
        char *copy = malloc(bytes + 1);
        memcpy(copy, model, bytes);
        accepted += st_tokenizer_from_sentencepiece("m", copy, bytes, &t) == STINT_OK;
        st_tokenizer_close(t);
        free(copy);
    }
    assert_int_equal(accepted, 3); // after the first piece, the second and the trainer
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_join_in_the_order_of_the_merges),
        cmocka_unit_test(unknown_characters_become_bytes_or_unk),
        cmocka_unit_test(unigram_takes_the_best_sum),
        cmocka_unit_test(added_tokens_are_cut_out_longest_first),
        cmocka_unit_test(broken_text_is_repaired),
        cmocka_unit_test(hostile_files_get_one_clear_error),
        cmocka_unit_test(nested_steps_end_somewhere),
        cmocka_unit_test(truncated_sentencepiece_models_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

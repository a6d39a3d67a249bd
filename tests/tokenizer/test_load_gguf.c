// SPDX-License-Identifier: Apache-2.0
// Vocabularies in GGUF metadata, right ones and hostile ones.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/expect.h"
#include "support/gguf_builder.h"
#include "support/support.h"
#include "tokenizer/parts.h"

#define SPACE "\xe2\x96\x81"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct entry {
    const char *text;
    int32_t kind; // 1 normal, 2 unknown, 3 control, 4 user-defined, 6 byte
    float score;
};

// One vocabulary; NULL or 0 leaves a key out.
struct file {
    const char *model, *pre, *architecture;
    uint32_t unknown;
    const struct entry *entries;
    size_t n_entries;
    const char *const *merges;
    size_t n_merges;
};

static void add_arrays(struct ts_gguf *out, const struct file *f) {
    ts_gguf_key_array(out, "tokenizer.ggml.tokens", ST_GGUF_STRING, f->n_entries);
    for (size_t i = 0; i < f->n_entries; i++) ts_gguf_text(out, f->entries[i].text);
    ts_gguf_key_array(out, "tokenizer.ggml.token_type", ST_GGUF_I32, f->n_entries);
    for (size_t i = 0; i < f->n_entries; i++) ts_gguf_bytes(out, &f->entries[i].kind, 4);
    ts_gguf_key_array(out, "tokenizer.ggml.scores", ST_GGUF_F32, f->n_entries);
    for (size_t i = 0; i < f->n_entries; i++) ts_gguf_bytes(out, &f->entries[i].score, 4);
    ts_gguf_key_array(out, "tokenizer.ggml.merges", ST_GGUF_STRING, f->n_merges);
    for (size_t i = 0; i < f->n_merges; i++) ts_gguf_text(out, f->merges[i]);
}

static stint_status open_file(const struct file *f, struct stint_tokenizer **t) {
    struct ts_gguf out = {0};
    struct st_gguf *gguf = NULL;
    ts_gguf_header(&out, 3, 0, 6 + (f->pre != NULL) + (f->architecture != NULL));
    ts_gguf_key_text(&out, "tokenizer.ggml.model", f->model);
    if (f->pre) ts_gguf_key_text(&out, "tokenizer.ggml.pre", f->pre);
    if (f->architecture) ts_gguf_key_text(&out, "general.architecture", f->architecture);
    ts_gguf_key_u32(&out, "tokenizer.ggml.unknown_token_id", f->unknown);
    add_arrays(&out, f);
    struct st_map map = ts_exact_map(out.data, out.n);
    assert_int_equal(st_gguf_open("v.gguf", &map, NULL, &gguf), STINT_OK);
    stint_status status = st_tokenizer_from_gguf(gguf, t);
    st_gguf_close(gguf);
    free((void *)map.data);
    ts_gguf_free(&out);
    return status;
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

static const struct entry sentencepiece[] = {
    {"<unk>", 2, 0},
    {"<s>", 3, 0},
    {"</s>", 3, 0},
    {"<0xC3>", 6, 0},
    {"<0x-1>", 6, 0},
    {"<0xZZ>", 1, 0},
    {"<0xA9>", 6, 0},
    {"\xe2\x96\x81", 1, -9},
    {"\xe2\x96\x81"
     "a",
     1, -1},
    {"a", 1, -8},
    {"aa", 1, -2},
    {"<ud>", 4, 0},
};

static const struct file spm = {.model = "llama",
                                .entries = sentencepiece,
                                .n_entries = sizeof sentencepiece / sizeof *sentencepiece};

static void sentencepiece_joins_by_score(void **state) {
    (void)state;
    struct stint_tokenizer *t = NULL;
    assert_int_equal(open_file(&spm, &t), STINT_OK);
    assert_ids(t, "aa", "8 9"); // the first a goes to the prefix
    assert_ids(t, "a aa", "8 8 9");
    assert_ids(t, "a\xc3\xa9", "8 3 6");
    assert_ids(t, "a<s>a", "8 1 8"); // each part has its own prefix
    assert_ids(t, "a<ud>", "8 11");
    assert_ids(t, "", "");
    st_tokenizer_close(t);
}

static void bytes_that_are_none_are_text(void **state) {
    (void)state;
    struct stint_tokenizer *t = NULL;
    char text[ST_PIECE_MAX_BYTES + 8];
    struct st_detokenizer d = {.begun = true};
    assert_int_equal(open_file(&spm, &t), STINT_OK);
    assert_int_equal(st_detokenizer_push(&d, t, 4, 0, text), 6);
    assert_memory_equal(text, "<0x-1>", 6);
    assert_int_equal(st_detokenizer_push(&d, t, 5, 0, text), 6);
    assert_int_equal(st_detokenizer_push(&d, t, 3, 0, text), 0);
    assert_int_equal(st_detokenizer_push(&d, t, 6, 0, text), 2);
    assert_memory_equal(text, "\xc3\xa9", 2);
    st_tokenizer_close(t);
}

#define G(text)                                                                                    \
    { text, 1, 0 }

static const struct entry gemma[] = {
    {"<unk>", 2, 0}, {"<bos>", 3, 0}, {"<0xC3>", 6, 0},  {"<0xA9>", 6, 0}, G(SPACE),
    G("a"),          G("b"),          G(SPACE "a"),      G("ab"),          G("\n"),
    G("\n\n"),       G(SPACE "ab"),   {"<|turn>", 3, 0}, {"<|\"|>", 4, 0},
};
static const char *const gemma_merges[] = {"a b", SPACE " ab", SPACE " a"};

static void gemma_joins_characters_by_merges(void **state) {
    static const struct file file = {.model = "gemma4",
                                     .entries = gemma,
                                     .n_entries = sizeof gemma / sizeof *gemma,
                                     .merges = gemma_merges,
                                     .n_merges = sizeof gemma_merges / sizeof *gemma_merges};
    (void)state;
    struct stint_tokenizer *t = NULL;
    char text[ST_PIECE_MAX_BYTES + 8];
    struct st_detokenizer d = {.begun = true};
    assert_int_equal(open_file(&file, &t), STINT_OK);
    assert_ids(t, "ab ab", "8 11"); // no space is added
    assert_ids(t, " a  b", "7 4 4 6");
    assert_ids(t, "a\xc3\xa9", "5 2 3");
    assert_ids(t, "a\n\n\nb", "5 10 9 6");
    assert_ids(t, "<|turn>a<|\"|>", "12 5 13");
    assert_int_equal(st_detokenizer_push(&d, t, 11, 0, text), 3);
    assert_memory_equal(text, " ab", 3);
    st_tokenizer_close(t);
}

static const struct entry bytes[] = {
    {"a", 1, 0},
    {"\xc4\xa0", 1, 0},
    {"b", 1, 0},
    {"ab", 1, 0},
    {"\xc4\xa0"
     "ab",
     1, 0},
    {"<|e|>", 3, 0},
    {"1", 1, 0},
    {"11", 1, 0},
    {"\xc3\x83", 1, 0}, // C3
    {"\xc2\xa9", 1, 0}, // A9
    {"\xc3\x8c", 1, 0}, // CC
    {"\xc4\xa3", 1, 0}, // 81
    {"\xc3\x82", 1, 0}, // C2
    {"\xc2\xb2", 1, 0}, // B2
    {"\xc3\x82\xc2\xb2", 1, 0},
};
static const char *const merges[] = {"a b", "\xc4\xa0 ab", "1 1", "\xc3\x82 \xc2\xb2"};

static const struct file gpt2 = {.model = "gpt2",
                                 .pre = "gpt-2",
                                 .entries = bytes,
                                 .n_entries = sizeof bytes / sizeof *bytes,
                                 .merges = merges,
                                 .n_merges = 4};

static void byte_level_splits_as_pre_says(void **state) {
    (void)state;
    struct stint_tokenizer *t = NULL;
    assert_int_equal(open_file(&gpt2, &t), STINT_OK);
    assert_ids(t, "ab ab11<|e|>", "3 4 7 5");
    st_tokenizer_close(t);
    struct file single = gpt2;
    single.pre = "starcoder";
    t = NULL;
    assert_int_equal(open_file(&single, &t), STINT_OK);
    assert_ids(t, "11", "6 6"); // digits one by one
    st_tokenizer_close(t);
}

static void qwen2_composes_characters(void **state) {
    (void)state;
    struct stint_tokenizer *t = NULL;
    assert_int_equal(open_file(&gpt2, &t), STINT_OK);
    assert_ids(t, "b\xcc\x81", "2 10 11"); // has no composed form
    st_tokenizer_close(t);
    struct file qwen2 = gpt2;
    qwen2.pre = "qwen2";
    t = NULL;
    assert_int_equal(open_file(&qwen2, &t), STINT_OK);
    assert_ids(t, "b\xcc\x81", "2 10 11");
    assert_ids(t, "e\xcc\x81", "8 9");
    st_tokenizer_close(t);
}

static void falcon_takes_mapped_bytes_for_digits(void **state) {
    (void)state;
    struct stint_tokenizer *t = NULL;
    assert_int_equal(open_file(&gpt2, &t), STINT_OK);
    assert_ids(t, "\xc2\xb2", "14");
    st_tokenizer_close(t);
    struct file falcon = gpt2;
    falcon.pre = "falcon";
    t = NULL;
    assert_int_equal(open_file(&falcon, &t), STINT_OK);
    assert_ids(t, "\xc2\xb2", "12 13"); // B2 is written as a superscript two
    st_tokenizer_close(t);
}

static void a_byte_without_a_token_is_left_out(void **state) {
    (void)state;
    struct stint_tokenizer *t = NULL;
    struct file f = gpt2;
    f.unknown = 5;
    assert_int_equal(open_file(&f, &t), STINT_OK);
    assert_ids(t, "a\xc5\xb7\x62", "3"); // its neighbours join
    st_tokenizer_close(t);
}

static void phi3_marks_take_the_space_after_them(void **state) {
    (void)state;
    const struct entry entries[] = {{"<unk>", 2, 0}, {"<|end|>", 3, 0}, {"<|endoftext|>", 3, 0},
                                    {"</s>", 4, 0},  {SPACE, 1, -9},    {SPACE "a", 1, -1},
                                    {"a", 1, -8}};
    struct file f = {.model = "llama", .architecture = "phi3", .entries = entries, .n_entries = 7};
    struct stint_tokenizer *t = NULL;
    assert_int_equal(open_file(&f, &t), STINT_OK);
    assert_ids(t, "<|end|>\n </s> a", "1 3 5");
    assert_ids(t, "<|endoftext|> <unk>", "2 4 4 0");
    st_tokenizer_close(t);
    f.architecture = "llama";
    t = NULL;
    assert_int_equal(open_file(&f, &t), STINT_OK);
    assert_ids(t, "</s> a", "3 4 5");
    st_tokenizer_close(t);
}

static void an_unknown_pre_is_refused_with_the_known_ones(void **state) {
    (void)state;
    struct stint_tokenizer *t = NULL;
    struct file f = gpt2;
    f.pre = "nobodys";
    assert_failure(open_file(&f, &t), STINT_E_UNSUPPORTED, "qwen2");
    f.model = "bert";
    assert_failure(open_file(&f, &t), STINT_E_UNSUPPORTED, "llama");
    f.model = "no_vocab";
    assert_failure(open_file(&f, &t), STINT_E_IO, "vocabulary");
    f.model = "none";
    assert_failure(open_file(&f, &t), STINT_E_IO, "vocabulary");
    assert_null(t);
}

static void every_known_pre_opens(void **state) {
    (void)state;
    char names[768] = "";
    size_t n_names = 0;
    st_gguf_family_names(names, sizeof names);
    for (char *name = strtok(names, ", "); name; name = strtok(NULL, ", "), n_names++) {
        struct stint_tokenizer *t = NULL;
        struct file f = gpt2;
        f.pre = name;
        if (open_file(&f, &t) != STINT_OK) fail_msg("%s: %s", name, st_error_text());
        assert_ids(t, "ab", "3");
        st_tokenizer_close(t);
    }
    assert_true(n_names > 35);
}

static void hostile_vocabularies_are_refused(void **state) {
    (void)state;
    struct stint_tokenizer *t = NULL;
    const char *bad_merges[] = {"a b", "a zz"};
    struct file f = gpt2;
    f.merges = bad_merges;
    f.n_merges = 2;
    assert_failure(open_file(&f, &t), STINT_E_FORMAT, "merge 1");
    bad_merges[1] = "ab";
    assert_failure(open_file(&f, &t), STINT_E_FORMAT, "merge 1");
    bad_merges[1] = "";
    assert_failure(open_file(&f, &t), STINT_E_FORMAT, "merge 1");
    f = gpt2;
    f.n_entries = 0;
    f.n_merges = 0;
    assert_failure(open_file(&f, &t), STINT_E_FORMAT, "tokens");
    struct entry entries[2] = {{"a", 1, NAN}, {"b", 1, 0}};
    f = (struct file){.model = "llama", .entries = entries, .n_entries = 2};
    assert_failure(open_file(&f, &t), STINT_E_FORMAT, "score");
    char *long_text = calloc(1, ST_PIECE_MAX_BYTES + 2);
    memset(long_text, 'x', ST_PIECE_MAX_BYTES + 1);
    for (int32_t kind = 1; kind <= 6; kind++) {
        entries[0] = (struct entry){long_text, kind, 0};
        assert_failure(open_file(&f, &t), STINT_E_FORMAT, "4097 bytes");
    }
    free(long_text);
    assert_null(t);
}

// Tokens that are not UTF-8 are never looked for, so the regular expressions see whole characters.
static void user_tokens_cannot_cut_characters(void **state) {
    (void)state;
    struct stint_tokenizer *t = NULL;
    const struct entry entries[] = {
        {"a", 1, 0}, {"\xc3", 4, 0}, {"\xa9", 3, 0}, {"\xc3\xa9", 4, 0}};
    struct file f = {.model = "gpt2", .pre = "gpt-2", .entries = entries, .n_entries = 4};
    assert_int_equal(open_file(&f, &t), STINT_OK);
    assert_ids(t,
               "a\xc3\xa9"
               "a\xc3\xa8",
               "0 3 0 1"); // the last one by its byte
    st_tokenizer_close(t);
}

static void no_lost_memory_when_memory_is_short(void **state) {
    (void)state;
    const struct file *const files[] = {&gpt2, &spm};
    for (size_t i = 0; i < 2; i++) {
        bool failed = true;
        for (size_t n = 1; failed; n++) {
            struct ts_gguf out = {0};
            struct st_gguf *gguf = NULL;
            struct stint_tokenizer *t = NULL;
            ts_gguf_header(&out, 3, 0, 6);
            ts_gguf_key_text(&out, "tokenizer.ggml.model", files[i]->model);
            ts_gguf_key_text(&out, "tokenizer.ggml.pre", "gpt-2");
            add_arrays(&out, files[i]);
            struct st_map map = ts_exact_map(out.data, out.n);
            assert_int_equal(st_gguf_open("v.gguf", &map, NULL, &gguf), STINT_OK);
            ts_fail_allocation(n);
            stint_status status = st_tokenizer_from_gguf(gguf, &t);
            failed = ts_allocation_failed();
            ts_fail_allocation(0);
            assert_int_equal(status, failed ? STINT_E_NOMEM : STINT_OK);
            st_tokenizer_close(t);
            st_gguf_close(gguf);
            free((void *)map.data);
            ts_gguf_free(&out);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentencepiece_joins_by_score),
        cmocka_unit_test(gemma_joins_characters_by_merges),
        cmocka_unit_test(bytes_that_are_none_are_text),
        cmocka_unit_test(byte_level_splits_as_pre_says),
        cmocka_unit_test(qwen2_composes_characters),
        cmocka_unit_test(falcon_takes_mapped_bytes_for_digits),
        cmocka_unit_test(a_byte_without_a_token_is_left_out),
        cmocka_unit_test(phi3_marks_take_the_space_after_them),
        cmocka_unit_test(an_unknown_pre_is_refused_with_the_known_ones),
        cmocka_unit_test(every_known_pre_opens),
        cmocka_unit_test(hostile_vocabularies_are_refused),
        cmocka_unit_test(user_tokens_cannot_cut_characters),
        cmocka_unit_test(no_lost_memory_when_memory_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/bpe.h"
#include "tokenizer/vocab.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void tokens_are_found_both_ways(void **state) {
    (void)state;
    struct st_vocab v;
    char text[16];
    size_t n = 0;
    st_vocab_open(&v, 100000);
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "t%d", i);
        assert_int_equal(st_vocab_add(&v, 2 * i, text, strlen(text), ST_TOKEN_NORMAL, 0), STINT_OK);
    }
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "t%d", i);
        assert_int_equal(st_vocab_find(&v, text, strlen(text)), 2 * i);
        assert_memory_equal(st_vocab_text(&v, 2 * i, &n), text, strlen(text));
        assert_null(st_vocab_text(&v, 2 * i + 1, &n)); // a gap
    }
    assert_int_equal(st_vocab_find(&v, "other", 5), -1);
    assert_null(st_vocab_text(&v, -1, &n));
    assert_null(st_vocab_text(&v, INT32_MAX, &n));
    st_vocab_close(&v);
}

static void bad_tokens_are_refused(void **state) {
    (void)state;
    struct st_vocab v;
    static char text[5000];
    st_vocab_open(&v, 100);
    assert_int_equal(st_vocab_add(&v, -1, "a", 1, ST_TOKEN_NORMAL, 0), STINT_E_FORMAT);
    assert_int_equal(st_vocab_add(&v, 100, "a", 1, ST_TOKEN_NORMAL, 0), STINT_E_FORMAT);
    assert_int_equal(st_vocab_add(&v, 1ll << 40, "a", 1, ST_TOKEN_NORMAL, 0), STINT_E_FORMAT);
    assert_int_equal(st_vocab_add(&v, 1, text, sizeof text, ST_TOKEN_NORMAL, 0), STINT_E_FORMAT);
    assert_int_equal(st_vocab_add(&v, 1, "a", 1, ST_TOKEN_NORMAL, strtod("nan", NULL)),
                     STINT_E_FORMAT);
    assert_int_equal(st_vocab_add(&v, 1, "a", 1, ST_TOKEN_NORMAL, 0), STINT_OK);
    assert_int_equal(st_vocab_add(&v, 1, "b", 1, ST_TOKEN_NORMAL, 0), STINT_E_FORMAT);
    assert_int_equal(st_vocab_add(&v, 1, "a", 1, ST_TOKEN_CONTROL, 0), STINT_OK);
    assert_int_equal(st_vocab_kind(&v, 1), ST_TOKEN_CONTROL);
    st_vocab_close(&v);
}

static void byte_tokens_are_those_of_the_exact_form(void **state) {
    (void)state;
    struct st_vocab v;
    const char *const texts[] = {"<0x41>", "<0x-1>", "<0xZZ>", "<0xff>", "<0x4>", "<0x411>"};
    st_vocab_open(&v, 100);
    for (int i = 0; i < 6; i++) st_vocab_add(&v, i, texts[i], strlen(texts[i]), ST_TOKEN_NORMAL, 0);
    st_vocab_mark_bytes(&v);
    assert_int_equal(v.bytes[0x41], 0);
    assert_int_equal(v.bytes[0xff], 3);
    assert_int_equal(st_vocab_kind(&v, 1), ST_TOKEN_NORMAL);
    assert_int_equal(st_vocab_kind(&v, 2), ST_TOKEN_NORMAL);
    assert_int_equal(v.bytes[4], -1);
    st_vocab_close(&v);
}

// The 256 characters are the printable ones in their place and U+0100 onwards for the others.
static void byte_level_text_covers_every_byte_once(void **state) {
    (void)state;
    bool seen[256] = {false};
    for (uint32_t c = 1; c < 0x180; c++) {
        char text[2], out[2];
        size_t n = c < 0x80 ? 1 : 2, n_out = 0;
        text[0] = (char)(n == 1 ? c : 0xc0 | c >> 6);
        text[1] = (char)(0x80 | (c & 0x3f));
        if (!st_byte_level_decode(text, n, out, &n_out)) continue;
        assert_int_equal(n_out, 1);
        assert_false(seen[(unsigned char)out[0]]);
        seen[(unsigned char)out[0]] = true;
    }
    for (int b = 0; b < 256; b++) assert_true(seen[b]);
    char out[4];
    size_t n_out;
    assert_true(st_byte_level_decode("\xc4\xa0", 2, out, &n_out)); // U+0120 is the space
    assert_int_equal(out[0], ' ');
    assert_true(st_byte_level_decode("\xc4\x8a", 2, out, &n_out)); // U+010A the line feed
    assert_int_equal(out[0], '\n');
    assert_false(st_byte_level_decode("\xe2\x96\x81", 3, out, &n_out));
    assert_false(st_byte_level_decode("\xc4", 1, out, &n_out));
}

// So nobody can write a file whose tokens collide: two vocabularies of the same tokens have them in
// different places, and find the same.
static void places_in_the_table_cannot_be_foreseen(void **state) {
    (void)state;
    enum { N = 500 };
    struct st_vocab vocabs[2];
    struct st_bpe rules[2] = {{0}, {0}};
    char text[16];
    for (int v = 0; v < 2; v++) {
        st_vocab_open(&vocabs[v], N);
        assert_int_equal(st_bpe_open_merges(&rules[v], N), STINT_OK);
        for (int i = 0; i < N; i++) {
            int n = snprintf(text, sizeof text, "%d", i);
            assert_int_equal(st_vocab_add(&vocabs[v], i, text, (size_t)n, ST_TOKEN_NORMAL, 0),
                             STINT_OK);
        }
        for (uint32_t i = 0; i < 40; i++) { // 10 = 1 0, 11 = 1 1, ...
            snprintf(text, sizeof text, "%u", i + 10);
            assert_true(st_bpe_add_merge(&rules[v], &vocabs[v], i, text, 1, text + 1, 1));
        }
    }
    assert_int_equal(vocabs[0].n_slots, vocabs[1].n_slots);
    assert_memory_not_equal(vocabs[0].slots, vocabs[1].slots, vocabs[0].n_slots * sizeof(int32_t));
    assert_memory_not_equal(rules[0].slots, rules[1].slots,
                            rules[0].n_slots * sizeof *rules[0].slots);
    for (int v = 0; v < 2; v++) {
        struct st_bpe_scratch scratch = {0};
        struct st_ids ids = {0};
        rules[v].unknown = -1;
        assert_int_equal(st_bpe_encode(&rules[v], &vocabs[v], &scratch, "4912", 4, &ids), STINT_OK);
        assert_int_equal(ids.count, 2);
        assert_int_equal(ids.data[0], 49);
        assert_int_equal(ids.data[1], 12);
        st_ids_free(&ids);
        st_bpe_scratch_free(&scratch);
        st_bpe_close(&rules[v]);
        st_vocab_close(&vocabs[v]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_found_both_ways),
        cmocka_unit_test(places_in_the_table_cannot_be_foreseen),
        cmocka_unit_test(bad_tokens_are_refused),
        cmocka_unit_test(byte_tokens_are_those_of_the_exact_form),
        cmocka_unit_test(byte_level_text_covers_every_byte_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

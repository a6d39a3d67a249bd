// SPDX-License-Identifier: Apache-2.0
// Decoding: in one piece as Hugging Face's library does it, and streamed.
#include "tokenizer/parts.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define BROKEN "\xef\xbf\xbd"
#define SPACE  "\xe2\x96\x81"

// <0x20> is 4, "a" is 5, " b" is 6, <s> is 7.
static const char llama[] =
    "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"<0xE2>\":0,\"<0x96>\":1,"
    "\"<0x81>\":2,\"<0x41>\":3,\"<0x20>\":4,\"a\":5,\"" SPACE "b\":6},\"merges\":[]},"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":["
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"" SPACE "\"},\"content\":\" \"},"
    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},"
    "\"added_tokens\":[{\"id\":7,\"content\":\"<s>\",\"special\":true}]}";

// An added token that is written as mapped bytes, and one that is not.
static const char byte_level[] =
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\xc3\xa3\":1,\"\xc4\xa3\":2},\"merges\":[]},"
    "\"decoder\":{\"type\":\"ByteLevel\"},"
    "\"added_tokens\":[{\"id\":3,\"content\":\"\xc3\xb8\"},{\"id\":4,\"content\":\"\xef\xbd\x9c\"}]"
    "}";

static struct stint_tokenizer *open_text(const char *json) {
    struct stint_tokenizer *t = NULL;
    if (st_tokenizer_from_json("tokenizer.json", json, strlen(json), &t) != STINT_OK)
        fail_msg("%s", st_error_text());
    return t;
}

#define assert_decoded(t, flags, wanted, ...)                                                      \
    check_decoded(t, flags, wanted, (const int32_t[]){__VA_ARGS__},                                \
                  sizeof(int32_t[]){__VA_ARGS__} / sizeof(int32_t))

static void check_decoded(const struct stint_tokenizer *t, uint32_t flags, const char *wanted,
                          const int32_t *ids, size_t n_ids) {
    char text[256];
    size_t n = 0;
    assert_int_equal(stint_detokenize(t, ids, n_ids, flags, text, sizeof text, &n), STINT_OK);
    assert_string_equal(text, wanted);
    assert_int_equal(n, strlen(wanted));
}

static void a_run_that_is_not_utf8_is_broken_byte_by_byte(void **state) {
    (void)state;
    struct stint_tokenizer *t = open_text(llama);
    assert_decoded(t, 0, SPACE "a", 0, 1, 2, 5);
    assert_decoded(t, 0, BROKEN BROKEN "a", 0, 1, 5);
    assert_decoded(t, 0, BROKEN BROKEN, 0, 1);
    assert_decoded(t, 0, BROKEN BROKEN BROKEN, 3, 0, 3);
    assert_decoded(t, 0, "A" SPACE "aA", 3, 0, 1, 2, 5, 3);
    assert_decoded(t, 0, SPACE, 0, 7, 1, 99, 2); // what is skipped does not end a run
    assert_decoded(t, STINT_DETOKENIZE_SPECIAL, BROKEN "<s>" BROKEN BROKEN, 0, 7, 1, 2);
    st_tokenizer_close(t);
}

static void only_the_first_space_of_the_text_is_left_out(void **state) {
    (void)state;
    struct stint_tokenizer *t = open_text(llama);
    assert_decoded(t, 0, "b b", 6, 6);
    assert_decoded(t, 0, "b b", 7, 6, 7, 6);
    assert_decoded(t, STINT_DETOKENIZE_SPECIAL, "<s> b", 7, 6);
    assert_decoded(t, 0, " b", 4, 6);
    assert_decoded(t, 0, BROKEN BROKEN, 4, 0); // the space is part of a broken run
    st_tokenizer_close(t);
}

static void added_tokens_may_be_mapped_bytes(void **state) {
    (void)state;
    struct stint_tokenizer *t = open_text(byte_level);
    assert_decoded(t, 0, BROKEN "a", 3, 0);
    assert_decoded(t, 0, "\xef\xbd\x9c", 4);
    assert_decoded(t, 0, BROKEN "a" BROKEN, 1, 0, 1); // E3 begins a character
    st_tokenizer_close(t);
}

// A character whose bytes are three tokens comes out once, whole; what never ends comes out as
// U+FFFD.
static void streaming_never_prints_half_a_character(void **state) {
    (void)state;
    struct stint_tokenizer *t = open_text(llama);
    struct st_detokenizer d = {0};
    char text[ST_PIECE_MAX_BYTES + 8];
    assert_int_equal(st_detokenizer_push(&d, t, 0, 0, text), 0);
    assert_int_equal(st_detokenizer_push(&d, t, 1, 0, text), 0);
    assert_int_equal(st_detokenizer_push(&d, t, 2, 0, text), 3);
    assert_memory_equal(text, "\xe2\x96\x81", 3);
    assert_int_equal(st_detokenizer_push(&d, t, 0, 0, text), 0);
    assert_int_equal(st_detokenizer_push(&d, t, 5, 0, text), 4);
    assert_memory_equal(text,
                        "\xef\xbf\xbd"
                        "a",
                        4);
    assert_int_equal(st_detokenizer_push(&d, t, 0, 0, text), 0);
    assert_int_equal(st_detokenizer_push(&d, t, 999, 0, text), 0);
    assert_int_equal(st_detokenizer_finish(&d, text), 3);
    assert_int_equal(st_detokenizer_finish(&d, text), 0);
    st_tokenizer_close(t);
}

// A stream has written a character before it sees that the run is broken.
static void a_stream_breaks_a_run_from_its_first_broken_byte_on(void **state) {
    (void)state;
    struct stint_tokenizer *t = open_text(llama);
    struct st_detokenizer d = {0};
    char text[ST_PIECE_MAX_BYTES + 8];
    assert_int_equal(st_detokenizer_push(&d, t, 3, 0, text), 1);
    assert_int_equal(st_detokenizer_push(&d, t, 0, 0, text), 0);
    assert_int_equal(st_detokenizer_push(&d, t, 3, 0, text), 6);
    assert_memory_equal(text, BROKEN BROKEN, 6);
    assert_int_equal(st_detokenizer_push(&d, t, 3, 0, text), 3);
    assert_int_equal(st_detokenizer_push(&d, t, 5, 0, text), 1);
    assert_int_equal(st_detokenizer_push(&d, t, 3, 0, text), 1);
    st_tokenizer_close(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_is_not_utf8_is_broken_byte_by_byte),
        cmocka_unit_test(only_the_first_space_of_the_text_is_left_out),
        cmocka_unit_test(added_tokens_may_be_mapped_bytes),
        cmocka_unit_test(streaming_never_prints_half_a_character),
        cmocka_unit_test(a_stream_breaks_a_run_from_its_first_broken_byte_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

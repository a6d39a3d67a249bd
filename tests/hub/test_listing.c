// SPDX-License-Identifier: Apache-2.0
#include "hub/listing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct st_hub_listing listing;

// Reads a listing of these files, separated by spaces.
static stint_status read(const char *files, const char *wanted) {
    char text[4096];
    size_t n = (size_t)snprintf(text, sizeof text, "{\"sha\": \"abc\", \"siblings\": [");
    struct st_hub_source source = {.revision = "main"};
    snprintf(source.wanted, sizeof source.wanted, "%s", wanted);
    for (const char *at = files; *at != 0;) {
        int length = (int)strcspn(at, " ");
        n += (size_t)snprintf(text + n, sizeof text - n, "%s{\"rfilename\": \"%.*s\", \"size\": 3}",
                              at == files ? "" : ", ", length, at);
        at += length + (at[length] == ' ');
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "]}");
    return st_hub_listing_read(text, n, &source, &listing);
}

static void listing_selects_what_makes_a_model(void **state) {
    (void)state;
    assert_int_equal(read("config.json model-00001-of-00002.safetensors README.md "
                          "model-00002-of-00002.safetensors original/model.safetensors "
                          "tokenizer.json consolidated.safetensors a.Q4_K_M.gguf",
                          ""),
                     STINT_OK);
    assert_true(listing.folder);
    assert_int_equal(listing.count, 4);
    assert_string_equal(listing.revision, "abc");
    assert_int_equal(read("config.json a.q8_0.gguf a.q4_k_m.gguf", ""), STINT_OK);
    assert_false(listing.folder);
    assert_string_equal(listing.files[0].path, "a.q4_k_m.gguf");
    assert_int_equal(listing.files[0].bytes, 3);
    assert_int_equal(read("only.Q2_K.gguf", ""), STINT_OK);
    assert_int_equal(read("a.Q8_0.gguf a.Q4_0.gguf", "q8"), STINT_OK);
    assert_string_equal(listing.files[0].path, "a.Q8_0.gguf");
    assert_int_equal(read("Q8_0.gguf a.Q8_0.gguf", "Q8_0.gguf"), STINT_OK);
    assert_string_equal(listing.files[0].path, "Q8_0.gguf");
}

static void listing_says_what_could_be_meant(void **state) {
    (void)state;
    assert_int_equal(read("a.Q8_0.gguf b.Q8_0.gguf", "Q8_0"), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "a.Q8_0.gguf, b.Q8_0.gguf"));
    assert_int_equal(read("a.Q8_0.gguf a.Q2_K.gguf", ""), STINT_E_ARG);
    assert_int_equal(read("pytorch_model.bin config.json", ""), STINT_E_ARG);
    assert_int_equal(read("a-00001-of-00002.gguf a-00002-of-00002.gguf", ""), STINT_E_ARG);
    assert_int_equal(read("", ""), STINT_E_ARG);
    assert_int_equal(read("../a.gguf /b.gguf .c.gguf", ""), STINT_E_ARG);
}

static void listing_refuses_what_is_none(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "7",
        "{\"siblings\": 1}",
        "{\"siblings\": [], \"sha\": 1}",
        "{\"siblings\": [1], \"sha\": \"../x\"}",
        "{\"siblings\": [{\"rfilename\": 1}]}",
        "{\"siblings\": [{\"rfilename\": \"a.gguf\", \"size\": -1}]}",
        "{\"siblings\": [{\"rfilename\": \"a.gguf\", \"lfs\": {\"sha256\": \"00\"}}]}"};
    struct st_hub_source source = {.revision = "main"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(st_hub_listing_read(bad[i], strlen(bad[i]), &source, &listing),
                         STINT_E_FORMAT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listing_selects_what_makes_a_model),
        cmocka_unit_test(listing_says_what_could_be_meant),
        cmocka_unit_test(listing_refuses_what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

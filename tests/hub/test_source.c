// SPDX-License-Identifier: Apache-2.0
#include "hub/source.h"

#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static stint_status parse(const char *text, struct st_hub_source *source) {
    struct st_hub_catalog *catalog;
    assert_int_equal(st_hub_catalog_load(&catalog), STINT_OK);
    stint_status status = st_hub_source_parse(catalog, text, source);
    free(catalog);
    return status;
}

static void source_reads_the_three_forms(void **state) {
    (void)state;
    struct st_hub_source source;
    assert_int_equal(parse("hf:Org-1/re.po_2", &source), STINT_OK);
    assert_string_equal(source.repo, "Org-1/re.po_2");
    assert_string_equal(source.wanted, "");
    assert_string_equal(source.revision, "main");
    assert_int_equal(parse("hf:org/repo:sub/file.gguf", &source), STINT_OK);
    assert_string_equal(source.wanted, "sub/file.gguf");
    assert_int_equal(parse("https://host/a/b.gguf?download=true#x", &source), STINT_OK);
    assert_string_equal(source.target, "b.gguf");
    assert_string_equal(source.url, "https://host/a/b.gguf?download=true#x");
}

static void source_of_every_tested_model_is_complete(void **state) {
    (void)state;
    struct st_hub_catalog *catalog;
    assert_int_equal(st_hub_catalog_load(&catalog), STINT_OK);
    assert_true(catalog->count > 0);
    for (size_t i = 0; i < catalog->count; i++) {
        const struct st_hub_entry *entry = &catalog->entries[i];
        struct st_hub_source source;
        assert_int_equal(st_hub_source_parse(catalog, entry->name, &source), STINT_OK);
        assert_int_equal(strlen(source.sha256), 64);
        assert_int_equal(strlen(source.revision), 40);
        assert_true(source.bytes > 0 && *source.repo != 0 && *source.wanted != 0);
        assert_true(*source.licence != 0 && *entry->about != 0);
        assert_true(st_hub_ends(source.wanted, ".gguf"));
    }
    free(catalog);
}

static void source_stays_below_the_folder(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "hf:",
                                      "hf:a",
                                      "hf:a/b/c",
                                      "hf:./b",
                                      "hf:a/../b",
                                      "hf:a/b:",
                                      "hf:a/b:../c",
                                      "hf:a/b:/c",
                                      "hf:a/b:c//d",
                                      "hf:a/b:c/",
                                      "hf:a/b c",
                                      "hf:a/b:\x01",
                                      "hf:a/b:c\\..\\d",
                                      "https://h/",
                                      "https://h",
                                      "http://h/.gguf",
                                      "http://h/..",
                                      "file:///etc/a.gguf"};
    struct st_hub_source source;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(parse(bad[i], &source), STINT_E_ARG);
    char *longer = malloc(4000);
    memset(longer, 'a', 3999);
    longer[3999] = 0;
    memcpy(longer, "hf:a/b:", 7);
    assert_int_equal(parse(longer, &source), STINT_E_ARG);
    memcpy(longer, "hf:a/bb", 7);
    assert_int_equal(parse(longer, &source), STINT_E_ARG);
    free(longer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(source_reads_the_three_forms),
        cmocka_unit_test(source_of_every_tested_model_is_complete),
        cmocka_unit_test(source_stays_below_the_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

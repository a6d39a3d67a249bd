// SPDX-License-Identifier: Apache-2.0
#include "hub/catalog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct st_hub_catalog catalog;

static void catalog_reads_rows(void **state) {
    (void)state;
    assert_int_equal(
        st_hub_catalog_parse("[a]\nsource = hf:x/y:z\nbytes = 12\n[b]\nabout = B: b\n", &catalog),
        STINT_OK);
    assert_int_equal(catalog.count, 2);
    assert_string_equal(catalog.entries[0].source, "hf:x/y:z");
    assert_int_equal(catalog.entries[0].bytes, 12);
    assert_string_equal(st_hub_catalog_find(&catalog, "b")->about, "B: b");
    assert_null(st_hub_catalog_find(&catalog, "c"));
}

static void catalog_names_the_line_it_does_not_understand(void **state) {
    (void)state;
    static const char *const bad[] = {"[a]\nbytes = 1x\n", "[a]\ncolour = red\n", "bytes = 1\n#\n",
                                      "[a]\nbytes = -1\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(st_hub_catalog_parse(bad[i], &catalog), STINT_E_FORMAT);
        assert_non_null(strstr(stint_error_text(), "line"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(catalog_reads_rows),
        cmocka_unit_test(catalog_names_the_line_it_does_not_understand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

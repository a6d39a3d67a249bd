// SPDX-License-Identifier: Apache-2.0
// Every method, filter, test and function of templates against what Jinja2 made of it, which
// make_recorded.py wrote into recorded.json.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/support.h"
#include "template/jinja.h"

#include <stdlib.h>
#include <string.h>

static void expect(const char *template, const json_t *variables, const char *expected) {
    struct st_jinja *jinja = NULL;
    char *text = NULL;
    size_t n;
    stint_status status = st_jinja_compile(template, strlen(template), &jinja);
    if (status == STINT_OK) status = st_jinja_render(jinja, variables, &text, &n);
    if (status != STINT_OK) fail_msg("%s: %s", template, st_error_text());
    assert_string_equal(text, expected);
    free(text);
    st_jinja_free(jinja);
}

static void templates_are_rendered_as_recorded(void **state) {
    (void)state;
    json_t *file = json_load_file(STINT_SOURCE_DIR "/tests/template/recorded.json", 0, NULL), *row;
    assert_non_null(file);
    const json_t *rows = json_object_get(file, "rows");
    size_t i;
    assert_true(json_array_size(rows) > 50);
    json_array_foreach(rows, i, row) {
        const char *template = NULL, *text = NULL;
        assert_int_equal(json_unpack(row, "[s, s]", &template, &text), 0);
        expect(template, json_object_get(file, "variables"), text);
    }
    json_decref(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(templates_are_rendered_as_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

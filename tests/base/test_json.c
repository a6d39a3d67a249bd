// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "support/support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static json_t *parse(const char *text) {
    json_t *json = NULL;
    if (st_json_parse("test", text, strlen(text), &json) != STINT_OK)
        fail_msg("%s", stint_error_text());
    return json;
}

static void json_refuses_damaged_text_and_names_file_and_line(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",       "{",        "{\"a\":1}}",    "{\"a\":1,\n\"a\":2}",  "[1,]",
        "nul",    "\"\xff\"", "{\"a\":1e999}", "99999999999999999999", "[\"\\ud800\"]",
        "[1] [2]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *json = NULL;
        assert_int_equal(st_json_parse("some.json", bad[i], strlen(bad[i]), &json), STINT_E_FORMAT);
        assert_null(json);
        assert_non_null(strstr(stint_error_text(), "some.json: line "));
    }
}

static void numbers_that_only_python_has_become_null(void **state) {
    (void)state;
    static const char text[] = "{\"a\":[0.0,Infinity,-Infinity,NaN],\"NaN\":\"\\\"Infinity\"}";
    json_t *json = NULL;
    assert_int_equal(st_json_parse_python("test", text, strlen(text), &json), STINT_OK);
    for (size_t i = 1; i < 4; i++)
        assert_true(json_is_null(json_array_get(json_object_get(json, "a"), i)));
    assert_string_equal(json_string_value(json_object_get(json, "NaN")), "\"Infinity");
    json_decref(json);
    static const char *const bad[] = {"{\"a\":Infinit}", "{\"a\":-NaN}", "NaNNaN", "\"\\"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(st_json_parse_python("test", bad[i], strlen(bad[i]), &json),
                         STINT_E_FORMAT);
}

static void json_refuses_endless_nesting(void **state) {
    (void)state;
    enum { DEPTH = 1000000 };
    char *text = malloc(DEPTH);
    json_t *json = NULL;
    assert_non_null(text);
    memset(text, '[', DEPTH);
    assert_int_equal(st_json_parse("deep", text, DEPTH, &json), STINT_E_FORMAT);
    free(text);
}

static void json_out_of_memory_is_not_called_a_damaged_file(void **state) {
    (void)state;
    static const char text[] = "{\"b\": {\"c\": 2.5}, \"a\": [1, \"a text that does not fit\"]}";
    for (size_t n = 1;; n++) {
        json_t *json = NULL;
        ts_fail_allocation(n);
        stint_status status = st_json_parse("some.json", text, sizeof text - 1, &json);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        json_decref(json);
        if (!failed) break;
        assert_int_equal(status, STINT_E_NOMEM);
        assert_non_null(strstr(stint_error_text(), "some.json: not enough memory"));
    }
}

static void json_integers_keep_their_default_or_their_bounds(void **state) {
    (void)state;
    json_t *json = parse("{\"a\":7,\"b\":null,\"c\":7.0,\"d\":\"7\",\"e\":-9223372036854775808}");
    int64_t value = 5;
    assert_int_equal(st_json_int(json, "absent", 0, 9, &value), STINT_OK);
    assert_int_equal(st_json_int(json, "b", 0, 9, &value), STINT_OK);
    assert_int_equal(value, 5);
    assert_int_equal(st_json_int(json, "a", 0, 6, &value), STINT_E_FORMAT);
    assert_int_equal(st_json_int(json, "a", 8, 9, &value), STINT_E_FORMAT);
    assert_int_equal(st_json_int(json, "c", 0, 9, &value), STINT_E_FORMAT);
    assert_int_equal(st_json_int(json, "d", 0, 9, &value), STINT_E_FORMAT);
    assert_non_null(strstr(stint_error_text(), "'d'"));
    assert_int_equal(value, 5);
    assert_int_equal(st_json_int(json, "a", 7, 7, &value), STINT_OK);
    assert_int_equal(value, 7);
    assert_int_equal(st_json_int(json, "e", INT64_MIN, 0, &value), STINT_OK);
    assert_true(value == INT64_MIN);
    json_decref(json);
}

static void json_numbers_take_integers_too(void **state) {
    (void)state;
    json_t *json = parse("{\"a\":7,\"b\":1e-6,\"c\":true}");
    double value = 0.5;
    assert_int_equal(st_json_number(json, "absent", 0, 9, &value), STINT_OK);
    assert_int_equal(st_json_number(json, "c", 0, 9, &value), STINT_E_FORMAT);
    assert_int_equal(st_json_number(json, "b", 1e-5, 9, &value), STINT_E_FORMAT);
    assert_true(value == 0.5);
    assert_int_equal(st_json_number(json, "b", 0, 9, &value), STINT_OK);
    assert_true(value == 1e-6);
    assert_int_equal(st_json_number(json, "a", 0, 9, &value), STINT_OK);
    assert_true(value == 7);
    json_decref(json);
}

static void json_booleans_and_strings_are_typed(void **state) {
    (void)state;
    json_t *json = parse("{\"t\":true,\"s\":\"text\",\"n\":null,\"one\":1,\"nul\":\"a\\u0000b\"}");
    bool flag = false;
    const char *text = "default";
    assert_int_equal(st_json_bool(json, "one", &flag), STINT_E_FORMAT);
    assert_int_equal(st_json_bool(json, "n", &flag), STINT_OK);
    assert_false(flag);
    assert_int_equal(st_json_bool(json, "t", &flag), STINT_OK);
    assert_true(flag);
    assert_int_equal(st_json_string(json, "one", &text), STINT_E_FORMAT);
    assert_int_equal(st_json_string(json, "nul", &text), STINT_E_FORMAT);
    assert_int_equal(st_json_string(json, "n", &text), STINT_OK);
    assert_string_equal(text, "default");
    assert_int_equal(st_json_string(json, "s", &text), STINT_OK);
    assert_string_equal(text, "text");
    json_decref(json);
}

static void json_members_of_what_is_no_object_are_absent(void **state) {
    (void)state;
    json_t *json = parse("[1]");
    int64_t value = 5;
    assert_int_equal(st_json_int(json, "a", 0, 9, &value), STINT_OK);
    assert_int_equal(value, 5);
    json_decref(json);
}

static void json_leaks_nothing_when_memory_runs_out(void **state) {
    (void)state;
    static const char text[] = "{\"a\": [1, {\"b\": \"text\"}, 2.5]}";
    size_t n = 1;
    for (;; n++) {
        json_t *json = NULL;
        ts_fail_allocation(n);
        stint_status status = st_json_parse("nested.json", text, sizeof text - 1, &json);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        if (status == STINT_OK) json_decref(json);
        if (!failed) break;
        assert_int_not_equal(status, STINT_OK);
    }
    assert_true(n > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_refuses_damaged_text_and_names_file_and_line),
        cmocka_unit_test(numbers_that_only_python_has_become_null),
        cmocka_unit_test(json_refuses_endless_nesting),
        cmocka_unit_test(json_out_of_memory_is_not_called_a_damaged_file),
        cmocka_unit_test(json_integers_keep_their_default_or_their_bounds),
        cmocka_unit_test(json_numbers_take_integers_too),
        cmocka_unit_test(json_booleans_and_strings_are_typed),
        cmocka_unit_test(json_members_of_what_is_no_object_are_absent),
        cmocka_unit_test(json_leaks_nothing_when_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "server/api/problem.h"
#include "support/support.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

// What jansson reads of it, which the caller lets go of.
static json_t *read_back(struct st_json_text *out) {
    json_error_t error;
    assert_false(out->failed);
    json_t *json = json_loadb(out->bytes.data, out->bytes.count,
                              JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) fail_msg("%s in %.*s", error.text, (int)out->bytes.count, out->bytes.data);
    st_bytes_free(&out->bytes);
    return json;
}

static void quoted_texts_read_back_as_they_were(void **state) {
    (void)state;
    for (int round = 0; round < 2000; round++) {
        char text[64];
        size_t n = ts_random_below(sizeof text - 4);
        // ASCII with all control characters, and now and then a longer character.
        for (size_t i = 0; i < n; i++) text[i] = (char)ts_random_below(0x80);
        if (n > 8) memcpy(text + ts_random_below(n - 4), "\xf0\x9f\x99\x82", 4);
        struct st_json_text out = {0};
        st_json_quote(&out, text, n);
        json_t *json = read_back(&out);
        assert_int_equal(json_string_length(json), n);
        assert_memory_equal(json_string_value(json), text, n);
        json_decref(json);
    }
}

static void any_bytes_give_valid_json(void **state) {
    (void)state;
    for (int round = 0; round < 2000; round++) {
        char bytes[48];
        size_t n = ts_random_below(sizeof bytes);
        ts_random_bytes(bytes, n);
        struct st_json_text out = {0};
        st_json_quote(&out, bytes, n);
        json_decref(read_back(&out));
    }
}

static void a_broken_sequence_is_one_replacement(void **state) {
    (void)state;
    struct st_json_text out = {0};
    st_json_quote(&out, "a\xe2\x82z\xff", 5);
    json_t *json = read_back(&out);
    assert_string_equal(json_string_value(json), "a\xef\xbf\xbdz\xef\xbf\xbd");
    json_decref(json);
}

static void numbers_that_json_lacks_are_null(void **state) {
    (void)state;
    struct st_json_text out = {0};
    st_json_raw(&out, "[");
    st_json_real(&out, -0.25);
    st_json_raw(&out, ",");
    st_json_real(&out, -INFINITY);
    st_json_raw(&out, ",");
    st_json_real(&out, NAN);
    st_json_raw(&out, "]");
    json_t *json = read_back(&out);
    assert_true(json_real_value(json_array_get(json, 0)) == -0.25);
    assert_true(json_is_null(json_array_get(json, 1)) && json_is_null(json_array_get(json, 2)));
    json_decref(json);
}

static void a_lost_growth_is_remembered(void **state) {
    (void)state;
    struct st_json_text out = {0};
    ts_fail_allocation(1);
    st_json_raw(&out, "some text");
    ts_fail_allocation(0);
    st_json_raw(&out, "more");
    assert_true(out.failed);
    assert_int_equal(out.bytes.count, 0);
    st_bytes_free(&out.bytes);
}

static void problems_have_openai_s_shape(void **state) {
    (void)state;
    static const struct {
        int status;
        const char *type, *code;
    } cases[] = {{400, "invalid_request_error", NULL},
                 {401, "authentication_error", "invalid_api_key"},
                 {404, "invalid_request_error", "not_found"},
                 {413, "invalid_request_error", "body_too_large"},
                 {429, "rate_limit_error", "queue_full"},
                 {500, "server_error", NULL},
                 {503, "server_error", "unavailable"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct st_problem problem;
        struct st_json_text out = {0};
        assert_false(st_refuse(&problem, cases[i].status, i == 0 ? "n" : NULL, "so \"%d\"", 5));
        st_problem_write(&problem, &out);
        json_t *json = read_back(&out), *error = json_object_get(json, "error");
        assert_string_equal(json_string_value(json_object_get(error, "message")), "so \"5\"");
        assert_string_equal(json_string_value(json_object_get(error, "type")), cases[i].type);
        const char *code = json_string_value(json_object_get(error, "code"));
        assert_true(cases[i].code != NULL ? strcmp(code, cases[i].code) == 0 : code == NULL);
        assert_int_equal(json_is_null(json_object_get(error, "param")), i != 0);
        json_decref(json);
    }
}

static void statuses_blame_the_right_side(void **state) {
    (void)state;
    assert_int_equal(st_problem_http(STINT_E_ARG), 400);
    assert_int_equal(st_problem_http(STINT_E_UNSUPPORTED), 400);
    assert_int_equal(st_problem_http(STINT_E_NOMEM), 503);
    assert_int_equal(st_problem_http(STINT_E_INTERNAL), 500);
    assert_int_equal(st_problem_http(STINT_E_IO), 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quoted_texts_read_back_as_they_were),
        cmocka_unit_test(any_bytes_give_valid_json),
        cmocka_unit_test(a_broken_sequence_is_one_replacement),
        cmocka_unit_test(numbers_that_json_lacks_are_null),
        cmocka_unit_test(a_lost_growth_is_remembered),
        cmocka_unit_test(problems_have_openai_s_shape),
        cmocka_unit_test(statuses_blame_the_right_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
